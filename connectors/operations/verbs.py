"""What operators do to work and lanes, from the command line and the console alike: the verb, and its audit entry in the verb's unit.

So whoever acts is written down with what he did, or neither is there; what was refused leaves no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from connectors import audit_log
from connectors.operations.lane_names import NamedLane
from connectors.operations.retarget import replay_retargeted
from projection.completion import lanes as lane_room
from projection.limits import circuit_breaker
from projection.refusals import Refused
from projection.replay import cancel as cancel_room
from projection.replay import discard as discard_room
from projection.replay import replay as replay_room
from projection.replay.cancel import Cancelled
from projection.replay.discard import Discarded
from projection.replay.replay import Replayed, Result


def replay(work_ids: Sequence[str], *, actor: str, reason: str, retarget: bool = False) -> list[Result]:
    """As `projection.replay.replay.replay_many`; `retarget`: under the current version of each item's route."""

    def note(results: dict[str, Result]) -> None:
        done = [one for one in results.values() if isinstance(one, Replayed)]
        audit_log.record_each(actor, "work.replay", {one.work_id: {"replay_work_id": one.replay_work_id} for one in done}, reason)

    room = replay_retargeted if retarget else replay_room.replay_many
    return room(work_ids, actor=actor, reason=reason, note=note)


def discard(work_id: str, *, actor: str, reason: str) -> Discarded | Refused:
    """As `projection.replay.discard.discard`."""
    note = _note(actor, "work.discard", work_id, reason)
    return discard_room.discard(work_id, actor=actor, reason=reason, note=lambda outcome: note(isinstance(outcome, Discarded)))


def cancel(work_id: str, *, actor: str, reason: str) -> Cancelled | Refused:
    """As `projection.replay.cancel.cancel`."""
    note = _note(actor, "work.cancel", work_id, reason)
    return cancel_room.cancel(work_id, actor=actor, reason=reason, note=lambda outcome: note(isinstance(outcome, Cancelled)))


def retry_now(work_id: str, *, actor: str, reason: str) -> Refused | None:
    """End the wait of work that waits to retry. Refused: `not_waiting`."""
    if not cancel_room.retry_now(work_id, actor=actor, note=_note(actor, "work.retry_now", work_id, reason)):
        return Refused(work_id, "not_waiting", "It does not wait to retry; `work show` tells where it stands.")
    return None


def hold(lane: NamedLane, *, actor: str, reason: str, release_at: datetime | None = None) -> bool:
    """Claim nothing of the lane until it is released, or until `release_at` (aware). False: it is held already."""
    ends = release_at.isoformat() if release_at else None
    note = _note(actor, "lane.hold", lane.lane, reason, {"lane_key": lane.lane_key, "release_at": ends})
    return lane_room.hold(
        lane.namespace, lane.lane_key, lane.lane, actor=actor, reason=reason, release_at=release_at, note=lambda _: note(True)
    )


def release(lane: NamedLane, *, actor: str, reason: str) -> bool:
    """Let a held lane be claimed again. False: it is not held."""
    note = _note(actor, "lane.release", lane.lane, reason, {"lane_key": lane.lane_key})
    return lane_room.release(lane.lane_key, actor=actor, note=note)


def try_destination(name: str, *, actor: str, reason: str) -> bool:
    """End the pause of a parked destination. False: it is not parked."""
    return circuit_breaker.end_park(name, note=_note(actor, "destination.retry", name, reason))


def _note(  # as `audit_log.record`
    actor: str, action: str, target: str, reason: str, detail: Mapping[str, Any] | None = None
) -> Callable[[bool], None]:
    """Writes the audit entry of what was done, in its unit."""

    def note(done: bool) -> None:
        if done:
            audit_log.record(actor, action, target, reason, detail=detail)

    return note
