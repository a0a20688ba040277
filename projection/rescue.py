"""Rescue: leases that ran out go back to `retry`, or to `dead` when the budget is used up (protocol 5). A unit of its own.

Compare-and-swap on the item's own lease, whoever the worker was; a worker that comes back finds its token gone and writes nothing.
"""

from __future__ import annotations

from typing import Final

from projection import clock
from projection.complete import Ended, Ending, end_attempts, log_ended
from projection.logs import log_event
from projection.models import WorkItem
from projection.rows import WorkRow
from projection.states import State
from projection.units import run_unit

BATCH: Final = 100
REASON: Final = "worker lost: its lease ran out before the attempt ended"


def rescue(limit: int = BATCH) -> int:
    """Return expired items to their next attempt, at once; number of items moved. One statement when there are none."""
    ids = WorkItem.objects.read_expired_leases(limit)
    if not ids:
        return 0
    ended = run_unit("rescue", lambda: _rescue(ids))
    log_ended(ended)
    if ended.written:
        log_event("rescue", level="warning", count=len(ended.written))
    return len(ended.written)


def _rescue(ids: list[int]) -> Ended:
    """Locks first, then the clock: a heartbeat that was faster is seen, and the item left alone."""
    locked = WorkItem.objects.lock_work_items(ids)
    now = clock.now()
    expired = [row for row in locked if row.state is State.PROCESSING and row.lease_expires_at and row.lease_expires_at <= now]
    return end_attempts([_ending(row) for row in expired])


def _ending(row: WorkRow) -> Ending:
    dead = row.attempts >= row.max_attempts
    return Ending(
        row,
        row.lease_token or "",
        State.DEAD if dead else State.RETRY,
        outcome="dead" if dead else "rescued",
        error=REASON,
    )
