"""Settings from the environment: prefix `HEADRACE_`, strict, each also as `…_FILE` (the value is the text of that file).

An unknown name or a malformed value stops the start with one sentence that names it and the way out. An empty value counts as unset.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib.util
import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from ops_ui.config import alert_targets

PREFIX: Final = "HEADRACE_"
CHECKOUT: Final = Path(__file__).resolve().parents[2]
"""Relative paths in settings start here, wherever a command is called from."""
SHORTEST_SECRET_KEY: Final = 32
"""Characters. Shorter keys can be guessed from a signed cookie."""
FERNET_KEY_BYTES: Final = 32
HIGHEST_PORT: Final = 65_535


class BadSetting(ImproperlyConfigured):
    """A HEADRACE_ setting is missing, unknown or malformed; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Where the web server listens. Port 0 = any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        text = raw.strip()
        if not text.isascii() or not text.isdigit() or len(text) > len(str(maximum)) or not minimum <= int(text) <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


BOOLEANS: Final = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _boolean(raw: str) -> bool:
    if raw.strip().lower() not in BOOLEANS:
        raise ValueError("must be true or false")
    return BOOLEANS[raw.strip().lower()]


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        word = raw.strip().lower()
        if word not in words:
            raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}")
        return word

    return parse


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


def _directory(raw: str) -> Path:
    return CHECKOUT / Path(raw).expanduser()


def _secret_key(raw: str) -> str:
    if len(raw) < SHORTEST_SECRET_KEY:
        raise ValueError(f"must have at least {SHORTEST_SECRET_KEY} random characters")
    return raw


def _fernet_keys(raw: str) -> list[str]:
    keys = _words(raw)
    for place, key in enumerate(keys, start=1):
        try:
            length = len(base64.b64decode(key, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError):
            length = 0
        if length != FERNET_KEY_BYTES:
            raise ValueError(
                f"has an invalid Fernet key at position {place}; each key is {FERNET_KEY_BYTES} random bytes in URL-safe base64"
            )
    return keys


def _hosts(raw: str) -> list[str]:
    hosts = _words(raw)
    for host in hosts:
        if "/" in host or "@" in host:
            raise ValueError(f"must be host names without scheme or path; {host!r} is not one")
    return hosts


def _public_url(raw: str) -> str:
    try:
        parts = urlsplit(raw)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("must be the scheme and host that providers call, such as https://hooks.example.com")
    return raw.rstrip("/")


def _networks(raw: str) -> list[str]:
    networks = _words(raw)
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise ValueError(f"must be networks such as 10.0.0.0/8 or 127.0.0.1/32; {network!r} is not one") from None
    return networks


def _bind(raw: str) -> Bind:
    host, colon, port = raw.strip().rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port[:6]) > HIGHEST_PORT or (colon and not host):
        raise ValueError(f"must be host:port or a port up to {HIGHEST_PORT}, such as 127.0.0.1:8000")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError("must have an IPv6 host in brackets, such as [::1]:8000")
    return Bind(host.strip("[]") or DEFAULT_BIND.host, int(port))


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how its text is read and what holds without it."""

    parse: Callable[[str], Any]
    default: Any = None


WEB_PROCESSES: Final = 2
"""Of the web server, so that one that is restarted leaves the other to answer."""
DEFAULT_BIND: Final = Bind("127.0.0.1", 8000)
SETTINGS: Final[dict[str, Setting]] = {
    "DATABASE_URL": Setting(str),
    "SECRET_KEY": Setting(_secret_key),
    "ENCRYPTION_KEYS": Setting(_fernet_keys, []),
    "ALLOWED_HOSTS": Setting(_hosts, ["localhost", "127.0.0.1", "[::1]"]),
    "PUBLIC_URL": Setting(_public_url, ""),
    "APPS": Setting(_apps, []),
    "MAX_BODY_BYTES": Setting(_integer(1024, 1024**3)),
    "LEASE_SECONDS": Setting(_integer(2, 86_400), 60),
    "WORKER_BATCH": Setting(_integer(1, 1000), 100),
    "ROUTER_BATCH": Setting(_integer(1, 1000), 50),
    "FORWARD_ALLOWED_NETWORKS": Setting(_networks, []),
    "TRUSTED_PROXIES": Setting(_networks, ["127.0.0.1/32", "::1/128"]),
    "DEMO": Setting(_boolean, False),
    "CONFIG_LOCKED": Setting(_boolean, False),
    "CONSOLE_READ_ONLY": Setting(_boolean, False),
    "RETENTION_DAYS": Setting(_integer(1, 36_500), 30),
    "DEAD_RETENTION_DAYS": Setting(_integer(1, 36_500), 90),
    "AGE_LIMIT_SECONDS": Setting(_integer(1, 31 * 86_400), 900),
    "ALERT_URL": Setting(alert_targets.webhook_url, ""),
    "ALERT_SECRET": Setting(alert_targets.webhook_secret, ""),
    "ALERT_MAIL": Setting(alert_targets.addresses, []),
    "MAIL_URL": Setting(alert_targets.mail_server),
    "ALERT_DEAD_LETTERS": Setting(_integer(1, 100_000), 10),
    "ALERT_SIGNATURE_FAILURES": Setting(_integer(1, 1_000_000), 20),
    "SPOOL_BYTES": Setting(_integer(0, 1024**4), 256 * 1024**2),
    "BIND": Setting(_bind, DEFAULT_BIND),
    "STATE_DIR": Setting(_directory),
    "LOG_LEVEL": Setting(_one_of("debug", "info", "warning", "error"), "info"),
    "LOG_FORMAT": Setting(_one_of("json", "text")),
    "DEBUG": Setting(_boolean, False),
}


def read(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Every setting by its name without prefix. Raises BadSetting, with a line for each that is wrong."""
    environ = os.environ if environ is None else environ
    problems = [*_unknown(environ)]
    values: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        try:
            values[name] = _value(name, setting, environ)
        except BadSetting as bad:
            problems.append(str(bad))
    if problems:
        raise BadSetting("\n".join(problems))
    return values


def _unknown(environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that no setting is meant by."""
    for name, value in environ.items():
        bare = name.removeprefix(PREFIX)
        known = bare in SETTINGS or bare.removesuffix("_FILE") in SETTINGS
        if name.startswith(PREFIX) and not known and not _is_of_kubernetes(bare, value):
            near = get_close_matches(bare, SETTINGS, n=1)
            meant = f"did you mean {PREFIX}{near[0]}? " if near else ""
            yield f"{name} is not a Headrace setting; {meant}known: {', '.join(PREFIX + known for known in SETTINGS)}."


_OF_A_SERVICE: Final = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
_PORT_OF_A_SERVICE: Final = re.compile(r"(\w+_)?PORT=(tcp|udp|sctp)://.*")


def _is_of_kubernetes(bare: str, value: str) -> bool:
    """Whether Kubernetes put it there, as into every container beside a service named headrace: it is no setting, and no mistake."""
    return bool(_OF_A_SERVICE.fullmatch(bare) or _PORT_OF_A_SERVICE.fullmatch(f"{bare}={value}"))


def is_set(name: str, environ: Mapping[str, str]) -> bool:
    """Whether setting `name` (without prefix) has a value of its own, directly or by a file."""
    return bool(environ.get(PREFIX + name) or environ.get(f"{PREFIX}{name}_FILE"))


def _value(name: str, setting: Setting, environ: Mapping[str, str]) -> Any:
    variable, file_variable = PREFIX + name, f"{PREFIX}{name}_FILE"
    raw, path = environ.get(variable), environ.get(file_variable)
    if path:
        if raw:
            raise BadSetting(f"{variable} and {file_variable} are both set; remove one of them.")
        try:
            raw = (CHECKOUT / Path(path).expanduser()).read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetting(
                f"{file_variable} names a file that cannot be read ({error}); correct the path or its permissions."
            ) from None
        if not raw:
            raise BadSetting(f"{file_variable} names {path}, which is empty; put the value there or unset {file_variable}.")
    if not raw:
        return setting.default
    try:
        return setting.parse(raw)
    except ValueError as error:
        raise BadSetting(f"{variable} is malformed: it {error}.") from None


WAKE: Final = "wake"
"""Folder of the sockets by which processes of a host wake each other, in `socket_folder`."""
LONGEST_STATE_DIR: Final = 70
"""Bytes of a path under which a Unix socket's name still fits into the kernel's 108."""


def socket_folder(state_dir: Path) -> Path:
    """Folder for Unix sockets of the installation in `state_dir`: itself, or a short private one where its path is too long."""
    path = os.fsencode(state_dir)
    if len(path) <= LONGEST_STATE_DIR:
        return state_dir
    # /tmp and not TMPDIR: every process of the installation must find the same folder, whatever its environment.
    return Path("/tmp") / f"headrace-{os.getuid()}-{hashlib.sha256(path).hexdigest()[:12]}"  # noqa: S108  # private: its users check owner and mode
