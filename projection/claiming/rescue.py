"""Rescue: leases that ran out go back to `retry`, or to `dead` when the budget is used up (docs/protocol.md#rescue). A unit of its
own.

Compare-and-swap on the item's own lease, whoever the worker was; a worker that comes back finds its token gone and writes nothing.
An attempt counts for what had started. Several items that ran in one lost worker are suspects: each runs apart, until it is known which
of them kills (`lost_workers.judge`).
An item that cannot be moved (its projection breaks the protocol, or its row is locked by a process that stands still) stays as it is
and keeps no other from being rescued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import DatabaseError

from projection.claiming.lost_workers import Leases, Verdict, judge
from projection.completion.complete import Ended, end_attempts, log_ended
from projection.completion.retry_policy import Again, after_failure
from projection.database import clock
from projection.database.bisecting import run_bisecting
from projection.database.catalogue import by_id, chunks, execute, fetch
from projection.database.transactions import error_code
from projection.facts import RetryPolicy, RouteFacts
from projection.leases import ALIVE_SECONDS, Ending, beat_seconds, owner_name
from projection.logs import log_event
from projection.models import Event, WorkItem
from projection.rows import WORK_COLUMNS, WorkRow
from projection.safe_text import error_text, with_reason
from projection.states import State

BATCH: Final = 100
REASON: Final = "worker lost: its lease expired before the attempt ended"
IN_COMPANY: Final = f"{REASON}; other items ran beside it, so it runs alone next and the attempt does not count"
LOCKED_CODES: Final = frozenset({1205, 3572})
"""What NOWAIT answers where a row is locked: MariaDB; MySQL and TiDB."""


class RowLocked(RuntimeError):
    """Another transaction holds the row: its worker ends the attempt just now, or stands still in the middle of that; tried again soon."""


def rescue() -> int:
    """Return expired items to their next attempt; number of items moved. One statement when there are none.

    Raises the database's error when it is away, or busy all the while.
    """
    expired = WorkItem.objects.read_expired_leases()
    if not expired:
        return 0
    leases = _read_leases()
    moved = 0
    for ids in chunks(expired, BATCH):
        for ended in run_bisecting("rescue", ids, lambda some: _rescue(some, leases), _log_fault):
            log_ended(ended)
            moved += len(ended.written)
    if moved:
        log_event("rescue", level="warning", count=moved)
    return moved


def _read_leases() -> Leases:
    """What is executed now, before any of it is moved, and who is alive. Two statements."""
    rows = fetch("read_leases")
    silent = timedelta(seconds=min(ALIVE_SECONDS, 2 * beat_seconds(settings.HEADRACE_LEASE_SECONDS)))
    alive = fetch("read_live_workers", microseconds=silent // timedelta(microseconds=1))
    return Leases(
        owners={(id, token): owner for id, owner, token, *_ in rows},
        held=Counter(owner for _, owner, *_ in rows),
        begun=frozenset(token for _, _, token, has_started, _ in rows if has_started),
        unexpired=frozenset(owner for _, owner, *_, has_expired in rows if not has_expired),
        alive=frozenset(owner_name(*row) for row in alive),
    )


def _log_fault(item_id: int, error: Exception) -> None:
    work_id = WorkItem.objects.filter(id=item_id).values_list("work_id", flat=True).first()
    if isinstance(error, RowLocked):
        log_event("rescue", level="warning", count=0, work_id=work_id, reason=str(error))
        return
    reason = "the item was not changed; run `audit`"
    log_event("rescue", level="error", count=0, work_id=work_id, error=error_text(error), reason=reason)


def _rescue(ids: Sequence[int], leases: Leases) -> Ended:
    """Locks first, then the clock: a heartbeat that was faster is seen, and the item left alone. Raises RowLocked."""
    locked = _lock(ids)
    now = clock.now()
    expired = [row for row in locked if row.state is State.PROCESSING and row.lease_expires_at and row.lease_expires_at <= now]
    judged = [(row, judge(row, leases)) for row in expired if leases.is_decided(row)]
    ended = end_attempts([_ending(row, verdict) for row, verdict in judged])
    suspects = sorted((row.id, verdict.workers_lost) for row, verdict in judged if verdict.workers_lost > row.workers_lost)
    if suspects:
        parts, values = by_id(("WorkersLost",), suspects)
        execute("suspect_work_items", [*values, tuple(id for id, _ in suspects)], **parts)
    return ended


def _lock(ids: Sequence[int]) -> list[WorkRow]:
    try:
        rows = fetch("lock_expired_leases", work_columns=WORK_COLUMNS, ids=tuple(sorted(ids)))
    except DatabaseError as error:
        if error_code(error) in LOCKED_CODES:
            raise RowLocked(str(RowLocked.__doc__)) from error
        raise
    return [WorkRow.of(row) for row in rows]


def _ending(row: WorkRow, verdict: Verdict) -> Ending:
    token = row.lease_token or ""
    if not verdict.counts:
        error, outcome = (IN_COMPANY, "rescued") if verdict.is_suspect else ("", "")
        return Ending(row, token, State.RETRY, outcome=outcome, error=error, give_back=1)
    if row.attempts >= row.max_attempts:
        return Ending(row, token, State.DEAD, outcome="dead", error=REASON)
    if not verdict.is_proven:
        return Ending(row, token, State.RETRY, outcome="rescued", error=REASON)
    age = (row.claimed_at - row.first_claimed_at).total_seconds() if row.claimed_at and row.first_claimed_at else 0.0
    after = after_failure(_policy_of(row), row.attempts, age)
    if isinstance(after, Again):
        return Ending(row, token, State.RETRY, outcome="rescued", error=REASON, delay_ms=int(after.delay * 1000))
    return Ending(row, token, State.DEAD, outcome="dead", error=with_reason(REASON, after.reason))


def _policy_of(row: WorkRow) -> RetryPolicy:
    """Its route's, as its event keeps it; the usual one where the event does not say. One statement."""
    snapshot = Event.objects.filter(id=row.event_id).values_list("route_snapshot", flat=True).first()
    try:
        return RouteFacts.from_snapshot(snapshot or "").retry
    except ValueError:
        return RetryPolicy(attempts=row.max_attempts)
