"""Rescue: leases that ran out go back to `retry`, or to `dead` when the budget is used up (docs/protocol.md#rescue). A unit of its
own.

Compare-and-swap on the item's own lease, whoever the worker was; a worker that comes back finds its token gone and writes nothing.
An item that cannot be moved (its projection breaks the protocol, or its row is locked by a process that stands still) stays as it is
and keeps no other from being rescued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import DatabaseError

from projection.completion.complete import Ended, end_attempts, log_ended
from projection.database import clock
from projection.database.bisecting import run_bisecting
from projection.database.catalogue import fetch
from projection.database.transactions import error_code
from projection.leases import Ending
from projection.logs import log_event
from projection.models import WorkItem
from projection.rows import WORK_COLUMNS, WorkRow
from projection.safe_text import error_text
from projection.states import State

BATCH: Final = 100
REASON: Final = "worker lost: its lease expired before the attempt ended"
LOCKED_CODES: Final = frozenset({1205, 3572})
"""What NOWAIT answers where a row is locked: MariaDB; MySQL and TiDB."""


class RowLocked(RuntimeError):
    """Another transaction holds the row: its worker ends the attempt just now, or stands still in the middle of that; tried again soon."""


def rescue(limit: int = BATCH) -> int:
    """Return expired items to their next attempt, at once; number of items moved. One statement when there are none.

    Raises the database's error when it is away, or busy all the while.
    """
    moved = 0
    for ended in run_bisecting("rescue", WorkItem.objects.read_expired_leases(limit), _rescue, _log_fault):
        log_ended(ended)
        moved += len(ended.written)
    if moved:
        log_event("rescue", level="warning", count=moved)
    return moved


def _log_fault(item_id: int, error: Exception) -> None:
    work_id = WorkItem.objects.filter(id=item_id).values_list("work_id", flat=True).first()
    if isinstance(error, RowLocked):
        log_event("rescue", level="warning", count=0, work_id=work_id, reason=str(error))
        return
    reason = "the item was not changed; run `audit`"
    log_event("rescue", level="error", count=0, work_id=work_id, error=error_text(error), reason=reason)


def _rescue(ids: Sequence[int]) -> Ended:
    """Locks first, then the clock: a heartbeat that was faster is seen, and the item left alone. Raises RowLocked."""
    locked = _lock(ids)
    now = clock.now()
    expired = [row for row in locked if row.state is State.PROCESSING and row.lease_expires_at and row.lease_expires_at <= now]
    return end_attempts([_ending(row) for row in expired])


def _lock(ids: Sequence[int]) -> list[WorkRow]:
    try:
        rows = fetch("lock_expired_leases", work_columns=WORK_COLUMNS, ids=tuple(sorted(ids)))
    except DatabaseError as error:
        if error_code(error) in LOCKED_CODES:
            raise RowLocked(str(RowLocked.__doc__)) from error
        raise
    return [WorkRow.of(row) for row in rows]


def _ending(row: WorkRow) -> Ending:
    dead = row.attempts >= row.max_attempts
    return Ending(
        row,
        row.lease_token or "",
        State.DEAD if dead else State.RETRY,
        outcome="dead" if dead else "rescued",
        error=REASON,
    )
