"""A lost connection: how an error tells of one, whether the database is away, and how a thread begins again.

Away is also a database that answers every question and refuses every change, as a failover leaves it behind. Where one is met, every
connection of the process is opened again (`backends/lasting.py`): the address may lead to another server by now.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connection, connections
from django.db.backends.utils import CursorWrapper

from projection.database import clock
from projection.database.catalogue import statement
from projection.database.transactions import error_code

LOST_CONNECTION_CODES: Final = frozenset(
    {
        1053,  # the server shuts down
        1927,  # MariaDB: killed
        2006,  # server has gone away
        2013,  # lost during a query
        2055,  # lost, with the system's error
        4031,  # MySQL: closed after its idle time-out
    }
)
CANNOT_CONNECT_CODES: Final = frozenset({1040, 1203, 2002, 2003, 2005})
"""No connection could be made at all: nobody listens, no name, or too many have one."""
READ_ONLY_CODES: Final = frozenset(
    {
        1290,  # --read-only, --super-read-only
        1792,  # a transaction of a session that may only read
        1836,  # TiDB, and MySQL while it is switched over
    }
)


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is gone: the server closed it, or (InterfaceError) nothing can be sent by it any more."""
    return isinstance(error, InterfaceError) or error_code(error) in LOST_CONNECTION_CODES


def is_read_only(error: BaseException) -> bool:
    """Whether the server refused a change because it takes none, whoever asks."""
    return error_code(error) in READ_ONLY_CODES


def is_outage(error: BaseException | None) -> bool:
    """Whether an error of the database is the database's own trouble, which passes, and no fault of what was sent."""
    if error is None:
        return False
    return is_connection_lost(error) or is_read_only(error) or error_code(error) in CANNOT_CONNECT_CODES


def is_database_away() -> bool:
    """Whether the database cannot be reached, or takes no writes, as two statements on a fresh connection tell."""
    forget_connection()
    try:
        clock.now()
        with connection.cursor() as cursor:
            probe_writes(cursor)
    except (DatabaseError, InterfaceError):
        return True
    return False


def probe_writes(cursor: CursorWrapper) -> None:
    """Raises the database's error when it takes no writes, or does not answer. One statement, which changes nothing."""
    cursor.execute(statement("probe_writes"))


def forget_connection() -> None:
    """Close this thread's connection and forget its state, whatever that is: the next statement opens a fresh one."""
    with suppress(DatabaseError, InterfaceError):  # it may be closed, or lost, already
        connection.close()
    del connections[DEFAULT_DB_ALIAS]
