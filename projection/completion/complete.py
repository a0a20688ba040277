"""Complete, retry, dead-letter, hand back: the end of an attempt, and the handoff that follows it (docs/protocol.md#complete).

`complete` is a unit of its own; `end_attempts` joins its caller's transaction (an atomic flow's, or a `commit()` tail). The work items
are locked in one statement; successors and lane siblings are read in later ones, so that whatever committed while the locks were
awaited is seen. Event rows are never locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from projection.completion import lanes
from projection.database import clock
from projection.database.catalogue import by_id, execute, fetch
from projection.database.clock import to_db
from projection.database.transactions import run_unit
from projection.leases import Ending
from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Ambiguous
from projection.rows import WorkRow
from projection.runtime.wake_up import notify_after_commit
from projection.safe_text import fingerprint
from projection.states import TERMINAL, State


@dataclass(frozen=True, slots=True)
class Ended:
    """What was written: endings whose lease held, WorkIds whose lease was lost, successors activated and rows unblocked."""

    written: Sequence[Ending]
    lost: Sequence[str]
    activated: int = 0
    unblocked: int = 0


def complete(endings: Sequence[Ending]) -> Ended:
    """End attempts in one transaction. A lost lease writes nothing and is logged; conflicts are retried whole."""
    ended = run_unit("complete", lambda: end_attempts(endings))
    log_ended(ended)
    return ended


def log_ended(ended: Ended) -> None:
    """One line for what went well, one for each failure and each lost lease."""
    for work_id in ended.lost:
        log_event("lease_lost", level="warning", work_id=work_id)
    for ending in ended.written:
        if ending.outcome:
            verb = {State.DEAD: "dead_letter", State.RETRY: "retry"}.get(ending.state, "complete")
            log_event(
                verb,
                level="warning",
                work_id=ending.work_id,
                attempt=ending.attempt,
                state=ending.state,
                error=ending.error,
                frames=ending.frames or None,
                rows=[ending],
            )
    done = [ending for ending in ended.written if not ending.outcome]
    if done:
        log_event("complete", count=len(done), activated=ended.activated, unblocked=ended.unblocked, rows=done)


def end_attempts(endings: Sequence[Ending]) -> Ended:
    """As `complete`, inside the caller's transaction: lock, check the token, write, hand off. About six statements for a batch."""
    if not endings:
        return Ended((), ())
    leases = WorkItem.objects.lock_leases([ending.item_id for ending in endings], {ending.token for ending in endings})
    held = [ending for ending in endings if ending.lease in leases]
    _record_failures(held)
    for state in TERMINAL:
        ids = sorted(ending.item_id for ending in held if ending.state is state)
        if ids:
            WorkItem.objects.complete_claimed_work_items(ids, {ending.token for ending in held}, state.value)
    again = [(ending.item_id, ending.delay_ms, ending.give_back) for ending in held if ending.state is State.RETRY]
    if again:
        WorkItem.objects.retry_claimed_work_items(sorted(again))
    cleared = tuple(sorted(ending.item_id for ending in held if ending.clears_suspicion))
    if cleared:
        execute("clear_suspicions", ids=cleared)
    activated, unblocked = hand_off([ending.row for ending in held if ending.state in TERMINAL])
    lost = [ending.work_id for ending in endings if ending.lease not in leases]
    return Ended(held, lost, activated, unblocked)


def _record_failures(endings: Sequence[Ending]) -> None:
    """Append one failure row per failed attempt; write the reason (also of a skip) to the items. Deferred tries in a row share one."""
    failed = [ending for ending in endings if ending.outcome]
    if failed:
        now = to_db(clock.now())
        again = _deferred_again(failed)
        if again:
            columns = ("Error", "ErrorFingerprint", "DelayMs", "LeaseOwner", "CreatedDate")
            rows = [(id, *_failure_row(again[id], now)[4:9]) for id in sorted(again)]
            parts, values = by_id(columns, rows)
            execute("count_deferred_again", [*values, tuple(sorted(again))], **parts)
        counted = {ending.lease for ending in again.values()}
        WorkItem.objects.insert_failures([_failure_row(ending, now) for ending in failed if ending.lease not in counted])
    reasons = [(ending.item_id, ending.error, fingerprint(ending.error)) for ending in endings if ending.error]
    if reasons:
        WorkItem.objects.note_errors(reasons)


def _deferred_again(failed: Sequence[Ending]) -> dict[int, Ending]:
    """Failure row → the deferred try that it stands for as well: the item's newest, where that was deferred too. One statement, or none."""
    deferred = {ending.item_id: ending for ending in failed if ending.outcome == "deferred"}
    if not deferred:
        return {}
    return {
        id: deferred[item]
        for item, id, outcome in fetch("read_newest_failures", ids=tuple(sorted(deferred)))
        if outcome == "deferred"
    }


def _failure_row(ending: Ending, now: datetime) -> tuple[object, ...]:
    delay = ending.delay_ms if ending.state is State.RETRY else None
    error, owner = ending.error, ending.owner or None
    return (
        ending.item_id,
        ending.work_id,
        ending.attempt,
        ending.outcome,
        error,
        fingerprint(error),
        delay,
        owner,
        now,
        ending.frames or None,
    )


def hand_off(ended: Sequence[WorkRow]) -> tuple[int, int]:
    """After rows (as they were under our locks) ended: activate their queued successors and unblock the next of their lanes.

    Number of activated and of unblocked rows. Joins the caller's transaction. Raises Ambiguous when a key has two successors.
    """
    successors = _activate([row.projection_key for row in ended if row.projection_key and row.active_key])
    blocking = {}
    if successors:
        now = clock.now()
        blocking = {row.lane_key: (row.lane_position, row.id) for row in successors if row.lane_key and row.run_after <= now}
    # What was itself blocked kept nobody waiting: those behind it wait for the row that is ahead of them all.
    blockers = [row.id for row in ended if row.lane_key and row.is_live and row.state is not State.BLOCKED]
    unblocked = lanes.unblock_next(blockers, blocking)
    if successors or unblocked:
        notify_after_commit("claim")
    return len(successors), unblocked


def _activate(keys: Sequence[str]) -> list[WorkRow]:
    if not keys:
        return []
    ids = WorkItem.objects.read_successors(sorted(keys))
    if not ids:
        return []
    queued = [row for row in WorkItem.objects.lock_work_items(ids) if row.is_successor]
    if len({row.projection_key for row in queued}) < len(queued) or not {row.projection_key for row in queued} <= set(keys):
        raise Ambiguous(f"more than one queued generation, or an unexpected one, for {sorted({row.work_id for row in queued})}")
    if queued:
        WorkItem.objects.activate_generations([row.id for row in queued])
    return queued
