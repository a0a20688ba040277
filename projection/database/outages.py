"""A lost connection: how an error tells of one, whether the database is away, and how a thread begins again.

Away is also a database that answers every question and refuses every change, as a failover or a full disk leaves it behind. Where a
read-only one is met, every connection of the process is opened again (`backends/lasting.py`): the address may lead to another server.
"""

from __future__ import annotations

import re
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
TABLE_FULL: Final = 1114
FULL_CODES: Final = frozenset(
    {
        1021,  # the disk is full; the server waits for space
        TABLE_FULL,  # InnoDB cannot make its file larger
        3675,  # MySQL: no space for a file of the table
    }
)
OF_THE_SYSTEM_CODES: Final = frozenset({3, 1026, 1030})
"""An error of the operating system, whose number the text names."""
TABLE_NAMED: Final = re.compile(r"able '(?P<table>[^']+)' is full")
NO_SPACE: Final = re.compile(r"\berr(?:or|no:?) 28\b", re.IGNORECASE)


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is gone: the server closed it, or (InterfaceError) nothing can be sent by it any more."""
    return isinstance(error, InterfaceError) or error_code(error) in LOST_CONNECTION_CODES


def is_read_only(error: BaseException) -> bool:
    """Whether the server refused a change because it takes none, whoever asks."""
    return error_code(error) in READ_ONLY_CODES


def is_full(error: BaseException) -> bool:
    """Whether the server could not store a change because its disk is full."""
    code = error_code(error)
    return code in FULL_CODES or (code in OF_THE_SYSTEM_CODES and NO_SPACE.search(str(error)) is not None)


def refuses_writes(error: BaseException) -> bool:
    """Whether the server answers and stores nothing, whoever asks."""
    return is_read_only(error) or is_full(error)


def is_outage(error: BaseException | None) -> bool:
    """Whether an error of the database is the database's own trouble, which passes, and no fault of what was sent."""
    if error is None:
        return False
    return is_connection_lost(error) or refuses_writes(error) or error_code(error) in CANNOT_CONNECT_CODES


def is_database_away(error: BaseException) -> bool:
    """Whether an error is that of a database that cannot be reached or takes no writes, as it tells itself or a fresh connection does.

    A full disk is met at one table while others still have space, and a probe of another would pass.
    """
    forget_connection()
    try:
        clock.now()
        with connection.cursor() as cursor:
            if is_full(error) and _is_of_the_disk(error, cursor):
                return True
            probe_writes(cursor)
    except (DatabaseError, InterfaceError):
        return True
    return False


def _is_of_the_disk(error: BaseException, cursor: CursorWrapper) -> bool:
    """Whether an error of `is_full` is the disk's, not that of a table which may not grow: one in memory, or a temporary one."""
    if error_code(error) != TABLE_FULL:
        return True
    named = TABLE_NAMED.search(str(error))
    cursor.execute(statement("read_stored_table"), {"name": named["table"] if named else ""})
    return cursor.fetchone() is not None


def probe_writes(cursor: CursorWrapper) -> None:
    """Raises the database's error when it takes no writes, has no space for them, or does not answer. Changes nothing.

    Five statements; `cursor` is on a connection without an open transaction.
    """
    cursor.execute(statement("probe_writes"))
    cursor.execute("BEGIN")
    try:
        cursor.execute(statement("probe_space_of_receipts"))
        cursor.execute(statement("probe_space_of_events"))
    finally:
        cursor.execute("ROLLBACK")


def forget_connection() -> None:
    """Close this thread's connection and forget its state, whatever that is: the next statement opens a fresh one."""
    with suppress(DatabaseError, InterfaceError):  # it may be closed, or lost, already
        connection.close()
    del connections[DEFAULT_DB_ALIAS]
