"""What a flow may do to the transaction around it: nothing. One that breaks it fails by itself and harms no other attempt.

Joins the caller's transaction. Django's own record of open blocks is used, because a flow may leave them open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connection, transaction

from projection.database.outages import forget_connection
from projection.database.transactions import is_server_conflict

_ENDS_TRANSACTION: Final = re.compile(
    r"\s*(COMMIT|ROLLBACK(?!\s+(?:WORK\s+)?TO\b)|BEGIN|START\s+TRANSACTION|SET\s+(?:SESSION\s+|@@)?AUTOCOMMIT|UNLOCK|LOCK\s+TABLES?|"
    r"TRUNCATE|RENAME|ALTER|(?:CREATE|DROP)(?!\s+TEMPORARY)|(?:ANALYZE|OPTIMIZE)\s+TABLE)\b",
    re.IGNORECASE,
)
"""Statements that end a transaction, DDL by its implicit commit."""


class BrokenTransaction(RuntimeError):
    """The flow broke the transaction that it ran in, so its writes are not kept; the message says how, and the way out."""


@contextmanager
def own_savepoint() -> Iterator[None]:
    """A savepoint for one call of an atomic flow, or for an atomic tail: released when it went well, else rolled back with its error.

    Raises BrokenTransaction for a statement that would end the transaction, which is not sent, and when the flow returned although
    its writes cannot be kept. A conflict that the flow caught is raised again: the server has rolled back what was written before it.
    """
    with transaction.atomic():
        depth = len(connection.atomic_blocks)
        guard = _Guard()
        try:
            with connection.execute_wrapper(guard):
                yield
        finally:
            left_open = _leave_blocks(depth)
        if guard.conflict is not None:
            raise guard.conflict
        if left_open:
            raise BrokenTransaction("the flow left transaction.atomic() open; use it in a `with` statement")
        if connection.needs_rollback:  # Django would now undo the flow's writes without a word
            raise BrokenTransaction(
                "the flow caught a database error and continued, so its writes would be lost; "
                "put the failing statement into its own transaction.atomic() block, or let the error through"
            )


class _Guard:
    """Passes on every statement of the flow but those that would end its transaction, and all that follow a conflict."""

    def __init__(self) -> None:
        self.conflict: DatabaseError | None = None
        """The deadlock or lock wait timeout after which the transaction is over, whatever the flow does with the error."""

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if self.conflict is not None:
            raise self.conflict
        found = _ENDS_TRANSACTION.match(str(sql))
        if found is not None:
            raise BrokenTransaction(
                f"{found[1].upper()} would end the transaction of an atomic flow; "
                "use transaction.atomic() instead, or make it a plain flow"
            )
        try:
            return execute(sql, params, many, context)
        except DatabaseError as error:
            if is_server_conflict(error):
                self.conflict = error
            raise


def _leave_blocks(depth: int) -> bool:
    """Roll back blocks that were entered and not left; whether there was one."""
    if len(connection.atomic_blocks) <= depth:
        return False
    error = BrokenTransaction("left open")
    while len(connection.atomic_blocks) > depth:
        connection.atomic_blocks[-1].__exit__(BrokenTransaction, error, None)
    return True


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Around a plain flow: the thread's next flow finds no transaction of this one, and no lock outlives the attempt.

    Raises BrokenTransaction when the flow returned with a transaction open, which is rolled back.
    """
    try:
        yield
    except BaseException:
        _end_open_transaction()
        raise
    if _end_open_transaction():
        raise BrokenTransaction("the flow returned with its transaction open, which was rolled back; commit it before it returns")


def _end_open_transaction() -> bool:
    """Roll back what this thread's connection has open; whether Django knew of it."""
    if connection.connection is None:
        return False
    known = connection.in_atomic_block or not connection.autocommit
    try:
        if not known:
            connection.rollback()  # one that was begun in plain SQL
    except (DatabaseError, InterfaceError):
        forget_connection()
    if known:
        forget_connection()
    return bool(known)
