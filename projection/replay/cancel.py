"""Cancel and retry now: what an operator may do to work that nobody executes. Each is a unit of its own.

Of cancelled work the successor and the lane move on (docs/protocol.md#cancel). The wait of a retry is ended by one compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from projection.completion.complete import hand_off
from projection.database.catalogue import execute
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Refused
from projection.runtime.wake_up import notify
from projection.states import State

CANCELLABLE = frozenset({State.PENDING, State.BLOCKED, State.RETRY})


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The item is `cancelled`."""

    work_id: str


Outcome = Cancelled | Refused


def cancel(work_id: str, *, actor: str, reason: str, note: Callable[[Outcome], object] | None = None) -> Outcome:
    """Cancel a pending, blocked or retrying item; a queued successor too (its inputs then lie in no executed generation).

    Refused: `not_found`, `processing` (wait, or let its lease run out), `terminal`. `note` as in `run_unit`.
    """
    outcome = run_unit("cancel", lambda: _cancel(work_id), note=note)
    if isinstance(outcome, Cancelled):
        log_event("cancel", work_id=work_id, actor=actor, reason=reason)
    return outcome


def _cancel(work_id: str) -> Outcome:
    found = WorkItem.objects.filter(work_id=work_id).values_list("id", flat=True).first() if work_id.isascii() else None
    locked = WorkItem.objects.lock_work_items([found]) if found is not None else []
    if not locked or locked[0].work_id != work_id:
        return Refused(work_id, "not_found", f"there is no work item {work_id}")
    row = locked[0]
    if row.state is State.PROCESSING:
        return Refused(work_id, "processing", f"{work_id} is running; cancel it after its attempt has ended")
    if row.state not in CANCELLABLE:
        return Refused(work_id, "terminal", f"{work_id} has already ended as {row.state}")
    WorkItem.objects.cancel_work_items([row.id])
    hand_off([row])
    return Cancelled(work_id)


def retry_now(work_id: str, *, actor: str, note: Callable[[bool], object] | None = None) -> bool:
    """Make a waiting retry due at once; False when it does not wait (not `retry`, or due already). Attempts and lane stay as they are.

    `note` as in `run_unit`; it is not called for a name that no work can have.
    """
    if not work_id.isascii():
        return False
    moved = run_unit("retry_now", lambda: execute("retry_work_item_now", work_id=work_id) == 1, note=note)
    if moved:
        log_event("retry_now", work_id=work_id, actor=actor)
        notify("claim")
    return moved
