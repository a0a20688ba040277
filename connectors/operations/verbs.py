"""What operators do to work, lanes, destinations and receipts: each verb once, for the command and the console's button alike.

A verb writes its audit entry in its own unit, so that both are there or neither; what was refused leaves no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import projection.completion.lanes
import projection.replay.cancel
import projection.replay.discard
import projection.replay.replay
from connectors import audit_log
from connectors.configuration.pausing import in_the_past
from connectors.operations.lane_names import NamedLane
from connectors.operations.retarget import replay_retargeted
from projection.database.catalogue import Sender
from projection.database.transactions import run_unit
from projection.limits import circuit_breaker
from projection.logs import log_event
from projection.refusals import Refused
from projection.replay.cancel import Cancelled
from projection.replay.decision import Replayed, Result
from projection.replay.discard import Discarded, Restored
from projection.runtime.wake_up import notify

_sql: Final = Sender(Path(__file__).parent)


def replay(work_ids: Sequence[str], *, actor: str, reason: str, retarget: bool = False) -> list[Result]:
    """As `projection.replay.replay.replay_many`; `retarget`: under the current version of each item's route."""

    def note(results: dict[str, Result]) -> None:
        done = [one for one in results.values() if isinstance(one, Replayed)]
        audit_log.record_each(actor, "work.replay", {one.work_id: {"replay_work_id": one.replay_work_id} for one in done}, reason)

    act = replay_retargeted if retarget else projection.replay.replay.replay_many
    return act(work_ids, actor=actor, reason=reason, note=note)


def discard(work_id: str, *, actor: str, reason: str) -> Discarded | Refused:
    """As `projection.replay.discard.discard`."""
    note = _note(actor, "work.discard", work_id, reason)
    return projection.replay.discard.discard(
        work_id, actor=actor, reason=reason, note=lambda outcome: note(isinstance(outcome, Discarded))
    )


def restore(work_ids: Sequence[str], *, actor: str, reason: str) -> dict[str, Restored | Refused]:
    """As `projection.replay.discard.restore`."""

    def note(outcomes: Mapping[str, Restored | Refused]) -> None:
        done: dict[str, dict[str, Any]] = {work_id: {} for work_id, outcome in outcomes.items() if isinstance(outcome, Restored)}
        audit_log.record_each(actor, "work.restore", done, reason)

    return projection.replay.discard.restore(work_ids, actor=actor, reason=reason, note=note)


def cancel(work_id: str, *, actor: str, reason: str) -> Cancelled | Refused:
    """As `projection.replay.cancel.cancel`."""
    note = _note(actor, "work.cancel", work_id, reason)
    return projection.replay.cancel.cancel(
        work_id, actor=actor, reason=reason, note=lambda outcome: note(isinstance(outcome, Cancelled))
    )


def retry_now(work_id: str, *, actor: str, reason: str) -> Refused | None:
    """End the wait of work that waits to retry. Refused: `not_waiting`."""
    if not projection.replay.cancel.retry_now(work_id, actor=actor, note=_note(actor, "work.retry_now", work_id, reason)):
        return Refused(work_id, "not_waiting", f"{work_id} is not waiting to retry; check its state (`work show`)")
    return None


def hold(lane: NamedLane, *, actor: str, reason: str, release_at: datetime | None = None) -> Refused | None:
    """Claim nothing of the lane until it is released, or until `release_at` (aware). Refused: `in_the_past`, `already_held`."""
    refused = in_the_past(lane.lane_key, release_at)
    if refused is not None:
        return refused
    ends = release_at.isoformat() if release_at else None
    note = _note(actor, "lane.hold", lane.lane, reason, {"lane_key": lane.lane_key, "release_at": ends})
    held = projection.completion.lanes.hold(
        lane.namespace, lane.lane_key, lane.lane, actor=actor, reason=reason, release_at=release_at, note=lambda _: note(True)
    )
    return None if held else Refused(lane.lane_key, "already_held", f"lane {lane.lane} is already held")


def release(lane: NamedLane, *, actor: str, reason: str) -> Refused | None:
    """Let a held lane be claimed again. Refused: `not_held`."""
    note = _note(actor, "lane.release", lane.lane, reason, {"lane_key": lane.lane_key})
    released = projection.completion.lanes.release(lane.lane_key, actor=actor, note=note)
    return None if released else Refused(lane.lane_key, "not_held", f"lane {lane.lane} is not held")


def try_destination(name: str, *, actor: str, reason: str) -> Refused | None:
    """End the pause of a parked destination. Refused: `not_parked`."""
    ended = circuit_breaker.end_park(name, note=_note(actor, "destination.retry", name, reason))
    return None if ended else Refused(name, "not_parked", f"destination {name or '(none)'} is not parked")


def reroute(receipt_id: int, *, actor: str, reason: str) -> Refused | None:
    """Give a quarantined receipt back to the router with a fresh budget of attempts. Refused: `not_quarantined`."""
    note = _note(actor, "receipt.reroute", str(receipt_id), reason)
    if not run_unit("reroute", lambda: _sql.execute("release_quarantined", id=receipt_id) == 1, note=note):
        return Refused(str(receipt_id), "not_quarantined", f"receipt {receipt_id} is not quarantined")
    log_event("reroute", receipt_id=receipt_id, actor=actor, reason=reason)
    notify("route")
    return None


def _note(  # as `audit_log.record`
    actor: str, action: str, target: str, reason: str, detail: Mapping[str, Any] | None = None
) -> Callable[[bool], None]:
    """Writes the audit entry of what was done, in its unit."""

    def note(done: bool) -> None:
        if done:
            audit_log.record(actor, action, target, reason, detail=detail)

    return note
