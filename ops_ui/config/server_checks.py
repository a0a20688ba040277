"""System checks that ask the database server (their ids stand in `ops_ui.config.checks`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from connectors import pack
from connectors.models import Connection, Endpoint, Receipt
from connectors.secrets import NoEncryptionKey, SecretsUnreadable, decrypt
from ops_ui.config.checks import Found, problem
from projection.admission.activation import OLDER_IDENTITIES, PROTOCOL_VERSION, WAY_OUT
from projection.models import Event, ProjectionProtocol

MEBIBYTE: Final = 1024**2
ESCAPED: Final = 2
"""Bytes that one byte of a body takes at most inside a statement."""
HEADROOM_BYTES: Final = MEBIBYTE
"""Room in the packet for the rest of the statement: headers, columns, keys."""
CHARSET: Final = "utf8mb4"
COLLATION: Final = "utf8mb4_general_ci"
OLDEST: Final = {"MariaDB": (10, 6), "MySQL": (8, 0), "TiDB": (8, 5)}


def register_all() -> None:
    """Make these checks known to Django."""
    for check in (check_server, check_isolation, check_packet, check_charset, check_binary_log, check_secrets, check_protocol):
        checks.register(check, "headrace", checks.Tags.database)


def check_server(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """What the server is. How the code behaves on it is decided by probes, never by this version."""
    found: Found = []
    for connection in (connections[alias] for alias in databases or ()):
        if connection.vendor != "mysql":
            message = f"The database engine is {connection.vendor}, but Headrace runs only on MariaDB, MySQL and TiDB."
            found.append(problem(1, message, "Set HEADRACE_DATABASE_URL to a mysql://, mariadb:// or tidb:// URL."))
            continue
        try:
            version = str(_rows(connection, "SELECT VERSION()")[0][0])
        except DatabaseError as error:
            message = f"The database cannot be reached ({_text(error)})."
            found.append(problem(1, message, "Start the server, or correct HEADRACE_DATABASE_URL."))
            continue
        found += check_version(version)
    return found


def check_version(version: str) -> Found:
    """The server's own words, e.g. `10.11.19-MariaDB-0+deb12u1`, `9.7.4`, `8.0.11-TiDB-v8.5.3`; older than supported is an error."""
    product, number = read_version(version)
    oldest = OLDEST[product]
    if number >= oldest:
        return []
    is_now, needed = (".".join(map(str, parts)) for parts in (number, oldest))
    return [
        problem(
            9,
            f"The database server is {product} {is_now}, but Headrace needs {needed} or newer.",
            "Upgrade it, or point HEADRACE_DATABASE_URL at a newer server.",
        )
    ]


def read_version(version: str) -> tuple[str, tuple[int, int]]:
    """Product and (major, minor) of a server's VERSION(). TiDB and, behind some proxies, MariaDB put another's number in front."""
    tidb = re.search(r"TiDB-v(\d+)\.(\d+)", version)
    if tidb:
        return "TiDB", (int(tidb[1]), int(tidb[2]))
    maria = re.search(r"(\d+)\.(\d+)\.\d+-MariaDB", version)
    if maria:
        return "MariaDB", (int(maria[1]), int(maria[2]))
    number = re.match(r"(\d+)\.(\d+)", version)
    return "MySQL", (int(number[1]), int(number[2])) if number else (0, 0)


def check_isolation(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """The admitted transaction must see what committed while it waited for a lock."""
    found: Found = []
    for connection in _reachable(databases):
        # Two names: MariaDB before 11.1 knows only the first, MySQL 8 and TiDB the second.
        rows = _rows(connection, "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')")
        levels = {str(value).replace("-", " ").upper() for _, value in rows}
        if levels - {"READ COMMITTED"}:
            found.append(
                problem(
                    2,
                    f"Connections run at {', '.join(sorted(levels))}, but Headrace needs READ COMMITTED.",
                    "Set OPTIONS['isolation_level'] of DATABASES to 'read committed', and make sure that no proxy changes it.",
                )
            )
    return found


def check_packet(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """Whether the server takes a statement with the largest body that is accepted."""
    found: Found = []
    for connection in _reachable(databases):
        rows = _rows(connection, "SHOW SESSION VARIABLES LIKE 'max_allowed_packet'")
        found += check_packet_size(int(rows[0][1])) if rows else []
    return found


def check_charset(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """Names and texts are of any language. The tables of Django and django-q2 take the character set of the database."""
    found: Found = []
    for connection in _reachable(databases):
        name = connection.settings_dict["NAME"]
        of_database = _rows(
            connection, "SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = DATABASE()"
        )
        charset = str(of_database[0][0]) if of_database else CHARSET
        ours = {table.lower() for table in connection.introspection.django_table_names()}
        rows = _rows(
            connection,
            "SELECT DISTINCT TABLE_NAME, CHARACTER_SET_NAME FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = DATABASE() AND CHARACTER_SET_NAME NOT IN ('utf8mb4', 'ascii', 'binary') ORDER BY TABLE_NAME",
        )
        others = [str(table) for table, _ in rows if str(table).lower() in ours]
        found += charset_problems(name, charset, others)
    return found


def charset_problems(name: str, charset: str, tables: Sequence[str]) -> Found:
    """`charset`: of the database `name`; `tables`: those with columns in another than utf8mb4."""
    if charset == CHARSET and not tables:
        return []
    to = f"CHARACTER SET {CHARSET} COLLATE {COLLATION}"
    statements = [f"ALTER DATABASE `{name}` {to};"] if charset != CHARSET else []
    statements += [f"ALTER TABLE `{table}` CONVERT TO {to};" for table in tables]
    what = (
        f"The character set of database {name!r} is {charset}"
        if charset != CHARSET
        else f"Tables of database {name!r} are not {CHARSET}"
    )
    return [
        problem(
            12,
            f"{what}, but Headrace needs {CHARSET}: names in other scripts could not be stored.",
            f"Nothing was changed. Run: SET FOREIGN_KEY_CHECKS = 0; {' '.join(statements)}"
            if tables
            else f"Nothing was changed. Run: {statements[0]}",
        )
    ]


def check_binary_log(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """InnoDB refuses each write at READ COMMITTED into a log of statements (1665)."""
    found: Found = []
    for connection in _reachable(databases):
        rows = _rows(connection, "SHOW SESSION VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format')")
        found += check_binlog_format({str(name): str(value) for name, value in rows})
    return found


def check_binlog_format(variables: Mapping[str, str]) -> Found:
    """An error for a binary log of statements; TiDB says STATEMENT and has none."""
    if variables.get("log_bin", "OFF") in ("OFF", "0") or variables.get("binlog_format") != "STATEMENT":
        return []
    return [
        problem(
            13,
            "The server writes its binary log with binlog_format=STATEMENT, which refuses every write at READ COMMITTED.",
            "Nothing was changed. Set binlog_format=ROW (or MIXED) on the server and connect again.",
        )
    ]


def check_packet_size(packet_bytes: int) -> Found:
    """An error where the limit that holds for all cannot be kept; a warning for a pack whose own larger limit cannot."""
    limit = settings.HEADRACE_MAX_BODY_BYTES or pack.DEFAULT_MAX_BODY_BYTES
    if packet_bytes < packet_for(limit):
        return [
            problem(
                3,
                f"The server's max_allowed_packet ({_mib(packet_bytes)}) is too small for a body of {_mib(limit)}.",
                f"Set it to {_mib(packet_for(limit))} or more on the server, or lower HEADRACE_MAX_BODY_BYTES.",
            )
        ]
    if settings.HEADRACE_MAX_BODY_BYTES:
        return []
    return [
        checks.Warning(
            f"The server's max_allowed_packet ({_mib(packet_bytes)}) is too small for the largest deliveries of {name} "
            f"({_mib(cls.max_body_bytes)}): they would be answered 503.",
            hint=f"Set it to {_mib(packet_for(cls.max_body_bytes))} or more on the server.",
            id="headrace.W003",
        )
        for name, cls in pack.registered().items()
        if packet_bytes < packet_for(cls.max_body_bytes)
    ]


def packet_for(body_bytes: int) -> int:
    """The max_allowed_packet that stores any body of this size."""
    return body_bytes * ESCAPED + HEADROOM_BYTES


def check_secrets(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """Whether the keys open every stored secret; a lost key is found at the start, not at the first delivery."""
    found: Found = []
    for connection in _reachable(databases):
        tables = {name.lower() for name in connection.introspection.table_names()}
        for model, word in ((Endpoint, "endpoint"), (Connection, "connection")):
            if model._meta.db_table.lower() in tables:
                found += _unreadable(connection.alias, model, word)
    return found


def _unreadable(alias: str, model: type[Endpoint | Connection], word: str) -> Iterable[checks.Error]:
    for row in model._default_manager.using(alias).exclude(secrets="").only("id", "secrets").iterator():
        try:
            decrypt(row.secrets)
        except (SecretsUnreadable, NoEncryptionKey):
            yield problem(
                7,
                f"No key in HEADRACE_ENCRYPTION_KEYS can decrypt the secret of {word} {row.pk}.",
                "Add the key it was encrypted with to HEADRACE_ENCRYPTION_KEYS, or set a new secret.",
            )


def check_protocol(databases: Sequence[str] | None = None, **_: Any) -> Found:
    """Whether what is stored has the identities of this version, before a migration or a delivery touches it."""
    found: Found = []
    models = (ProjectionProtocol, Event, Receipt)
    for connection in _reachable(databases):
        tables = {name.lower() for name in connection.introspection.table_names()}
        if all(model._meta.db_table.lower() in tables for model in models) and _is_older(connection.alias):
            found.append(problem(14, f"{OLDER_IDENTITIES}.", f"{WAY_OUT[0].upper()}{WAY_OUT[1:]}."))
    return found


def _is_older(alias: str) -> bool:
    older = ProjectionProtocol.objects.using(alias).filter(protocol_version__lt=PROTOCOL_VERSION).exists()
    return older and any(model._default_manager.using(alias).values("id")[:1] for model in (Event, Receipt))


def _reachable(databases: Sequence[str] | None) -> Iterator[BaseDatabaseWrapper]:
    """The connections that work; what is wrong with the others is said once, by `check_server`."""
    for connection in (connections[alias] for alias in databases or ()):
        try:
            connection.ensure_connection()
        except DatabaseError:
            continue
        if connection.vendor == "mysql":
            yield connection


def _rows(connection: BaseDatabaseWrapper, statement: str) -> Sequence[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _text(error: Exception) -> str:
    return " ".join(str(part) for part in error.args[1:]) or str(error)


def _mib(count: int) -> str:
    return f"{count / MEBIBYTE:.0f} MiB" if count >= MEBIBYTE else f"{count} bytes"
