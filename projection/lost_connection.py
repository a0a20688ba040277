"""A lost connection: how an error tells of one, whether the database is away, and how a thread begins anew."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connection, connections

from projection import clock
from projection.units import error_code

LOST_CONNECTION_CODES: Final = frozenset(
    {
        2006,  # server has gone away
        2013,  # lost during a query
        2055,  # lost, with the system's error
        4031,  # MySQL: closed after its idle time-out
    }
)


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is gone: the server closed it, or (InterfaceError) nothing can be sent by it any more."""
    return isinstance(error, InterfaceError) or error_code(error) in LOST_CONNECTION_CODES


def is_database_away() -> bool:
    """Whether the database cannot be reached, as one query on a fresh connection tells."""
    forget_connection()
    try:
        clock.now()
    except (DatabaseError, InterfaceError):
        return True
    return False


def forget_connection() -> None:
    """Close this thread's connection and forget its state, whatever that is: the next statement opens a fresh one."""
    with suppress(DatabaseError, InterfaceError):  # it may be closed, or lost, already
        connection.close()
    del connections[DEFAULT_DB_ALIAS]
