"""First contact with the database server: does it answer, does it let us in, is our database there?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import MySQLdb

from ops_ui.config.database_url import demands_tls
from ops_ui.config.tls import TLS_FAILED, is_encrypted
from ops_ui.start import CannotStart

UNKNOWN_DATABASE: Final = 1049
REFUSED: Final = {1044, 1045, 1698, 1130, 1227, 1142}
"""Access denied for a database or user, host not allowed, privilege missing."""
CONNECT_SECONDS: Final = 10


def connect(settings: Mapping[str, Any], name: str = "") -> Any:
    """A plain mysqlclient connection by a DATABASES entry, to database `name` or to none. Raises MySQLdb.Error."""
    host = str(settings["HOST"])
    place = {"unix_socket": host} if host.startswith("/") else {"host": host, "port": int(settings["PORT"])}
    options = {key: value for key, value in settings["OPTIONS"].items() if key in ("charset", "ssl_mode", "ssl")}
    connection = MySQLdb.connect(
        user=settings["USER"], passwd=settings["PASSWORD"], db=name, connect_timeout=CONNECT_SECONDS, **place, **options
    )
    if demands_tls(settings) and not is_encrypted(connection):
        connection.close()
        raise MySQLdb.OperationalError(TLS_FAILED, "the server does not offer TLS")
    return connection


def ensure_database(settings: Mapping[str, Any]) -> bool:
    """Create the database of a DATABASES entry unless it exists; True = created. Raises CannotStart."""
    name = settings["NAME"]
    try:
        connect(settings, name).close()
    except MySQLdb.Error as error:
        if error.args[0] != UNKNOWN_DATABASE:
            raise explain(error, settings) from None
    else:
        return False
    quoted = "`" + name.replace("`", "``") + "`"
    try:
        with closing(connect(settings)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {quoted} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    except MySQLdb.Error as error:
        raise explain(error, settings) from None
    return True


def has_tables(settings: Mapping[str, Any]) -> bool:
    """Whether the database exists (it is created if not) and was ever migrated. Raises CannotStart."""
    if ensure_database(settings):
        return False
    try:
        with closing(connect(settings, settings["NAME"])) as connection, closing(connection.cursor()) as cursor:
            cursor.execute("SHOW TABLES LIKE 'django_migrations'")
            return bool(cursor.fetchone())
    except MySQLdb.Error as error:
        raise explain(error, settings) from None


def explain(error: MySQLdb.Error, settings: Mapping[str, Any]) -> CannotStart:
    """The sentence for a failed first contact; the password is never part of it."""
    code = error.args[0] if error.args else 0
    user, name = settings["USER"], settings["NAME"]
    place = settings["HOST"] + (f":{settings['PORT']}" if settings["PORT"] else "")
    if code in REFUSED:
        what = f"the database server at {place} refuses user {user!r} for database {name!r} ({_reason(error)})"
        out = (
            "correct the user or password in HEADRACE_DATABASE_URL, or have the server administrator grant it ALL on that database"
        )
    elif code == TLS_FAILED:
        what = f"no encrypted connection to the database server at {place} ({_reason(error)})"
        out = "enable TLS on the server, or correct ssl= and ca= in HEADRACE_DATABASE_URL"
    else:
        what = f"the database server at {place} does not answer ({_reason(error)})"
        out = "start it, or correct HEADRACE_DATABASE_URL"
    return CannotStart(f"{what[0].upper()}{what[1:]}; {out}.")


def _reason(error: MySQLdb.Error) -> str:
    return " ".join(str(part) for part in error.args[1:]) or type(error).__name__
