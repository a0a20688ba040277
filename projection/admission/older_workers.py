"""Event-owned rows: facts that an old binary may run, and whatever it does with them (docs/protocol.md#rolling-upgrade).

Until the checkpoint is activated an event is its own job for an old binary. One of both runs it: the first claim of its work item moves
it to a fence that the old binary sees, unless that has leased it; what the old binary has ended is copied to the unclaimed work item,
and nothing runs a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from projection.completion.complete import hand_off
from projection.database.bisecting import run_bisecting
from projection.logs import log_event
from projection.models import Event, WorkItem
from projection.safe_text import error_text, fingerprint, storable
from projection.states import State

ENDS: Final = {"processed": State.PROCESSED, "skipped": State.SKIPPED, "dead": State.DEAD, "cancelled": State.CANCELLED}
"""Status of an event-owned row that has ended → the state of its work item. (`skipped` under the fence means nothing.) Whatever else an
old binary has ended one as is a dead letter: it must not run again by itself, and somebody must know of it.
"""


def fence(event_ids: Sequence[int]) -> set[int]:
    """Move event-owned facts to the fence, before any work item is locked; the ids of those that are ours now.

    Joins the claim's transaction. Not ours is what an old binary has leased, or has ended.
    """
    Event.objects.fence_events(sorted(event_ids))
    owners = Event.objects.read_event_owners(event_ids)
    return {event_id for event_id, owner in owners.items() if owner == "work_item"}


def copy_results(event_ids: Sequence[int]) -> int:
    """End the unclaimed work items of events that an old binary has ended, with its result; number of items. A unit of its own.

    The events are locked before the items, as a claim locks them. An item that was claimed, or has ended, stays as it is; so does one
    that cannot be ended (its projection breaks the protocol), which keeps no other from its end.
    """
    return sum(run_bisecting("complete", sorted(event_ids), _copy_results, _log_fault))


def _log_fault(event_id: int, error: Exception) -> None:
    log_event(
        "complete",
        level="error",
        event_id=event_id,
        error=error_text(error),
        reason="ended by an older version of Headrace; run `audit`",
    )


def _result(status: str, error: str | None) -> tuple[State, str | None]:
    """What an old binary's end of an event is to its work item: (state, error text)."""
    if status in ENDS:
        return ENDS[status], error
    return State.DEAD, storable(f"an older version of Headrace ended it as {status!r}" + (f": {error}" if error else ""))


def _copy_results(event_ids: Sequence[int]) -> int:
    results = {event: _result(status, error) for event, status, error in Event.objects.lock_legacy_results(event_ids)}
    rows = WorkItem.objects.lock_work_items(WorkItem.objects.read_unclaimed_work_of(sorted(results)))
    ended = [row for row in rows if row.is_live and row.claimed_at is None and row.event_id in results]
    for state in {state for state, _ in results.values()}:
        ids = [row.id for row in ended if results[row.event_id][0] is state]
        if ids:
            WorkItem.objects.end_unclaimed_work_items(ids, state.value)
    errors = [(row.id, error, fingerprint(error)) for row in ended if (error := results[row.event_id][1])]
    if errors:
        WorkItem.objects.note_errors(errors)
    activated, unblocked = hand_off(ended)
    for row in ended:
        log_event("complete", work_id=row.work_id, state=results[row.event_id][0], reason="ended by an older version of Headrace")
    if ended:
        log_event("complete", count=len(ended), activated=activated, unblocked=unblocked)
    return len(ended)
