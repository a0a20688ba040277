"""HEADRACE_DATABASE_URL: one URL chooses the server, its engine and its TLS.

`mysql://user:password@host:port/name?socket=…&ssl=required` (also `mariadb://`, `tidb://`; or `ssl=verify-full&ca=/path/to/ca.pem`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.db.backends.utils import typecast_time
from MySQLdb.constants import FIELD_TYPE
from MySQLdb.converters import conversions
from MySQLdb.times import DateTime_or_None

from ops_ui.config.environment import BadSetting

LOCK_WAIT_SECONDS: Final = 10
INGRESS_LOCK_WAIT_SECONDS: Final = 2
INGRESS_TIMEOUT_SECONDS: Final = 3
"""The strictest providers wait 3 to 5 s for an answer; after this a delivery is spooled, or refused so that it is sent again."""
_MYSQL, _TIDB = "projection.database.backends.mysql", "projection.database.backends.tidb"
ENGINES: Final = {"mysql": _MYSQL, "mariadb": _MYSQL, "tidb": _TIDB}
DEFAULT_PORTS: Final = {"mysql": 3306, "mariadb": 3306, "tidb": 4000}
LONGEST_NAME: Final = 64
"""Characters of a database name, on all three servers."""


def database(url: str) -> dict[str, Any]:
    """Django's DATABASES entry. Raises BadSetting, never quoting the password, for anything but a URL of the module's form."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise _bad("has an invalid host or port; write it as mysql://user:password@host:3306/headrace") from None
    if parts.scheme not in ENGINES:
        raise _bad(
            f"starts with {parts.scheme or 'no scheme'!r}: Headrace runs on MariaDB, MySQL and TiDB only; "
            "use mysql://, mariadb:// or tidb://"
        )
    options = _options(parts)
    socket = options.get("socket", "")
    return {
        "ENGINE": ENGINES[parts.scheme],
        "NAME": _name(parts),
        "USER": _user(parts),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": socket or parts.hostname or "127.0.0.1",
        "PORT": "" if socket else str(port or DEFAULT_PORTS[parts.scheme]),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "charset": "utf8mb4",
            "conv": CONVERSIONS,
            "isolation_level": "read committed",
            "connect_timeout": 10,
            # The server's default of 50 s, tried again eight times, would keep a page or a loop for minutes.
            "init_command": f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}",
            **_tls(options),
        },
        "TEST": {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"},
    }


def bounded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of the ingress' own connection to the same database: it gives up before a provider does.

    The server is to give up a lock first, so that it is known that nothing was written; the client's time-outs are for a server
    that says nothing at all.
    """
    waits = f"innodb_lock_wait_timeout = {INGRESS_LOCK_WAIT_SECONDS}, lock_wait_timeout = {INGRESS_LOCK_WAIT_SECONDS}"
    timeouts = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), INGRESS_TIMEOUT_SECONDS)
    options = {**settings["OPTIONS"], **timeouts, "init_command": f"SET SESSION {waits}"}
    return {**settings, "OPTIONS": options, "TEST": {"MIRROR": "default"}}


def is_local(settings: Mapping[str, Any]) -> bool:
    """Whether a DATABASES entry names this host: a Unix socket or a loopback address."""
    host = str(settings.get("HOST") or "localhost")
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def demands_tls(settings: Mapping[str, Any]) -> bool:
    """Whether a DATABASES entry says that its connections must be encrypted."""
    return "ssl_mode" in settings.get("OPTIONS", {})


def _bad(what: str) -> BadSetting:
    return BadSetting(f"HEADRACE_DATABASE_URL {what}.")


def _options(parts: SplitResult) -> dict[str, str]:
    if parts.fragment:
        raise _bad("contains a '#'; write the characters # / ? @ : of a password percent-encoded (# is %23)")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    for name, value in pairs:
        if name not in {"socket", "ssl", "ca"}:
            raise _bad(f"has an unknown option {name!r}; known: socket, ssl, ca")
        if not value or [other for other, _ in pairs].count(name) > 1:
            raise _bad(f"needs exactly one value for its option {name}")
    options = dict(pairs)
    if not options.get("socket", "/").startswith("/"):
        raise _bad("has a socket that is not an absolute path; write socket=/path/to/mysqld.sock")
    return options


def _name(parts: SplitResult) -> str:
    name = unquote(parts.path.removeprefix("/"))
    if not name:
        raise _bad("has no database; add one at its end, such as /headrace")
    if "/" in name or "\0" in name or len(name) > LONGEST_NAME:
        raise _bad(f"has an invalid database name; use at most {LONGEST_NAME} characters without a slash")
    return name


def _user(parts: SplitResult) -> str:
    user = unquote(parts.username or "")
    if not user:
        raise _bad("has no user; write it as mysql://user:password@host/headrace")
    return user


def _tls(options: Mapping[str, str]) -> dict[str, Any]:
    mode, ca = options.get("ssl"), options.get("ca")
    if mode is None and ca is None:
        return {}
    if mode == "required" and ca is None:
        return {"ssl_mode": "REQUIRED"}
    if mode == "verify-full" and ca is not None:
        if not ca.startswith("/") or not Path(ca).is_file():
            raise _bad(
                f"names ca={ca}, which is not a file; give the absolute path of the PEM file of the server's certificate authority"
            )
        return {"ssl_mode": "VERIFY_IDENTITY", "ssl": {"ca": ca}}
    raise _bad("has invalid TLS options; use ssl=required, or ssl=verify-full together with ca=/path/to/ca.pem")


def datetime_of(text: str) -> datetime | None:
    """A DATETIME as the server writes it, naive. None for what is no time, such as a date of zeros."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        value: datetime | None = DateTime_or_None(text)
        return value


CONVERSIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    **conversions,
    FIELD_TYPE.TIME: typecast_time,  # as in Django's backend, whose list this replaces
    FIELD_TYPE.DATETIME: datetime_of,
    FIELD_TYPE.TIMESTAMP: datetime_of,
}
"""The driver's `conv` option."""
