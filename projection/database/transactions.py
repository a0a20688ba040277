"""A unit of work: one transaction that commits whole or not at all, retried whole when the database reports a conflict.

After a lock wait time-out (1205) only the statement is undone, so a unit is always rolled back and started again, never resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from django.db import DatabaseError, connection, transaction
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from projection.logs import log_event

T = TypeVar("T")

CONFLICT_CODES: Final = frozenset(
    {
        1020,  # MariaDB: record changed since last read (snapshot isolation)
        1205,  # lock wait time-out
        1213,  # deadlock victim
        8002,  # TiDB: SELECT FOR UPDATE write conflict
        8022,  # TiDB: commit failed, transaction must be retried
        8028,  # TiDB: schema changed under the transaction
        9007,  # TiDB: write conflict
    }
)
DUPLICATE_KEY: Final = 1062
NO_SUCH_TABLE: Final = 1146
RACED_KEYS: Final = frozenset({"ProjectionActiveKey", "LaneHolderKey"})
"""Unique keys on which a duplicate means "another transaction was faster", not "the data is wrong"."""
ATTEMPTS: Final = 8
"""A unit meets a conflict rarely and its victim rarely twice; eight tries over about 2 s outlast any burst that is not an outage."""

_KEY_NAME: Final = re.compile(r"for key '(?:[^']*\.)?([^'.]+)'")


def error_code(error: BaseException) -> int | None:
    """The server's (or client library's) error number of a database error; None for anything else."""
    if isinstance(error, DatabaseError) and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return None


def duplicate_key(error: BaseException) -> str | None:
    """Name of the unique key that a 1062 names; None for any other error."""
    if error_code(error) != DUPLICATE_KEY:
        return None
    match = _KEY_NAME.search(str(error.args[1]) if len(error.args) > 1 else "")
    return match.group(1) if match else ""


def is_server_conflict(error: BaseException) -> bool:
    """Whether the server chose this transaction as the one to be tried again."""
    return error_code(error) in CONFLICT_CODES


def is_conflict(error: BaseException) -> bool:
    """Whether the whole unit may simply be tried again: a server conflict, or a promotion or claim that was faster."""
    return is_server_conflict(error) or duplicate_key(error) in RACED_KEYS


def noting(verb: str) -> Callable[[RetryCallState], None]:
    """What to call before each further try of a unit: it logs the conflict with the server's code."""

    def note(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log_event("conflict", unit=verb, attempt=state.attempt_number, error_code=error_code(error) if error else None)

    return note


def run_unit(
    verb: str,
    unit: Callable[[], T],
    *,
    attempts: int = ATTEMPTS,
    retry_on: Callable[[BaseException], bool] = is_conflict,
    one_statement: bool = False,
    note: Callable[[T], object] | None = None,
) -> T:
    """Run `unit` in a transaction of its own and commit; on a conflict roll back and run it again with jitter, at most `attempts` times.

    `one_statement` promises that the unit sends exactly one statement, which is a transaction by itself: it saves the three calls that
    open and close one. `note` (not with `one_statement`) is called with what the unit came to, in its transaction: what it writes down
    commits with the unit, or not at all. Raises the last conflict when they do not end, and anything else at once; in both cases nothing
    was written. Must not be called inside a transaction (RuntimeError).
    """
    if one_statement and connection.in_atomic_block:
        raise RuntimeError(f"{verb} must not run inside another transaction")

    def noted() -> T:
        done = unit()
        if note is not None:
            note(done)
        return done

    retrying = Retrying(
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.02, max=1),
        retry=retry_if_exception(retry_on),
        before_sleep=noting(verb),
        reraise=True,
    )
    return retrying(noted if one_statement else transaction.atomic(durable=True)(noted))
