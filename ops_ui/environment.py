"""Settings from the environment: prefix `HEADRACE_`, strict, each also as `…_FILE`.

An unknown name or a malformed value stops the start with one sentence that names it and the way out.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

PREFIX: Final = "HEADRACE_"
ENGINES: Final = {"mysql": "django.db.backends.mysql", "mariadb": "django.db.backends.mysql", "tidb": "django_tidb"}


class BadSetting(ImproperlyConfigured):
    """A HEADRACE_ setting is missing, unknown or malformed; the message names it and says what to do."""


def _integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        if not raw.strip().isascii() or not raw.strip().isdigit() or not minimum <= int(raw) <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}")
        return int(raw)

    return parse


def _boolean(raw: str) -> bool:
    if raw not in ("0", "1", "true", "false"):
        raise ValueError("must be true or false")
    return raw in ("1", "true")


def _words(raw: str) -> list[str]:
    return [word for word in raw.replace(",", " ").split() if word]


def _apps(raw: str) -> list[str]:
    """Django apps of the installation's own: a package name, or the dotted path of its AppConfig."""
    names = _words(raw)
    for name in names:
        package = name.partition(".")[0]
        if not package.isidentifier() or importlib.util.find_spec(package) is None:
            raise ValueError(f"names {name!r}, which cannot be imported; install the package or put its folder on PYTHONPATH")
    return names


def _networks(raw: str) -> list[str]:
    """IP networks in CIDR form; a bare address is a network of one."""
    for word in _words(raw):
        try:
            ipaddress.ip_network(word)
        except ValueError as error:
            raise ValueError(f"takes IP networks such as 10.0.0.0/8 or fd00::/8, and {error}") from None
    return _words(raw)


def _directory(raw: str) -> Path:
    return Path(raw).expanduser().absolute()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its text is read and what holds without it."""

    parse: Callable[[str], Any]
    default: Any = None


SETTINGS: Final[dict[str, Setting]] = {
    "DATABASE_URL": Setting(str),
    "SECRET_KEY": Setting(str),
    "ENCRYPTION_KEYS": Setting(_words, []),
    "ALLOWED_HOSTS": Setting(_words, ["localhost", "127.0.0.1", "[::1]"]),
    "PUBLIC_URL": Setting(str, ""),
    "APPS": Setting(_apps, []),
    "MAX_BODY_BYTES": Setting(_integer(1024, 1024**3)),
    "LEASE_SECONDS": Setting(_integer(2, 86_400), 60),
    "WORKER_BATCH": Setting(_integer(1, 1000), 100),
    "ROUTER_BATCH": Setting(_integer(1, 1000), 50),
    "FORWARD_ALLOWED_NETWORKS": Setting(_networks, []),
    "CONFIG_LOCKED": Setting(_boolean, False),
    "RETENTION_DAYS": Setting(_integer(1, 36_500), 30),
    "DEAD_RETENTION_DAYS": Setting(_integer(1, 36_500), 90),
    "STATE_DIR": Setting(_directory),
    "DEBUG": Setting(_boolean, False),
}


def read(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Every setting by its name without prefix. Raises BadSetting."""
    environ = os.environ if environ is None else environ
    for name in environ:
        bare = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and bare not in SETTINGS and bare.removesuffix("_FILE") not in SETTINGS:
            raise BadSetting(f"{name} is not a Headrace setting; known are: {', '.join(PREFIX + known for known in SETTINGS)}.")
    return {name: _value(name, setting, environ) for name, setting in SETTINGS.items()}


def _value(name: str, setting: Setting, environ: Mapping[str, str]) -> Any:
    variable, file_variable = PREFIX + name, f"{PREFIX}{name}_FILE"
    raw = environ.get(variable)
    if file_variable in environ:
        if raw is not None:
            raise BadSetting(f"{variable} and {file_variable} are both set; keep one of them.")
        try:
            raw = Path(environ[file_variable]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetting(f"{file_variable} names a file that cannot be read ({error}); fix the path or its rights.") from None
    if raw is None or raw == "":
        return setting.default
    try:
        return setting.parse(raw)
    except ValueError as error:
        raise BadSetting(f"{variable} is malformed: it {error}.") from None


def database(url: str) -> dict[str, Any]:
    """Django's DATABASES entry for `mysql://user:password@host:port/name?socket=…&ssl=required|verify-full&ca=…`.

    Raises BadSetting for any other kind of URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ENGINES:
        raise BadSetting(
            f"HEADRACE_DATABASE_URL starts with {parts.scheme or '(nothing)'!r}: Headrace runs on MariaDB, MySQL and TiDB only; "
            "use mysql://, mariadb:// or tidb://."
        )
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    unknown = set(options) - {"socket", "ssl", "ca"}
    if unknown:
        raise BadSetting(f"HEADRACE_DATABASE_URL has an unknown option {sorted(unknown)[0]!r}; known are socket, ssl and ca.")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise BadSetting("HEADRACE_DATABASE_URL names no database; end it with /headrace, for example.")
    try:
        port = parts.port
    except ValueError:
        raise BadSetting("HEADRACE_DATABASE_URL has a port that is no number.") from None
    return {
        "ENGINE": ENGINES[parts.scheme],
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.get("socket") or parts.hostname or "127.0.0.1",
        "PORT": "" if options.get("socket") else str(port or (4000 if parts.scheme == "tidb" else 3306)),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "charset": "utf8mb4",
            "isolation_level": "read committed",
            "connect_timeout": 10,
            **_tls(options),
        },
        "TEST": {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"},
    }


def _tls(options: Mapping[str, str]) -> dict[str, Any]:
    mode = options.get("ssl")
    if mode is None:
        return {}
    if mode == "required":
        return {"ssl_mode": "REQUIRED"}
    if mode == "verify-full" and options.get("ca"):
        return {"ssl_mode": "VERIFY_IDENTITY", "ssl": {"ca": options["ca"]}}
    raise BadSetting("HEADRACE_DATABASE_URL: ssl must be `required`, or `verify-full` together with ca=/path/to/ca.pem.")
