"""What operators do to work and lanes, from the command line and the console alike: the verb, then its audit entry.

The verb is a unit of its own, which nothing may surround; so the entry is written after it, and only for what was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from connectors import audit_log
from connectors.lane_names import NamedLane
from connectors.retarget import replay_retargeted
from projection import breaker
from projection import cancel as cancel_room
from projection import discard as discard_room
from projection import lanes as lane_room
from projection import replay as replay_room
from projection import retry_now as retry_now_room
from projection.cancel import Cancelled
from projection.discard import Discarded
from projection.refusals import Refused
from projection.replay import Replayed, Result


def replay(work_ids: Sequence[str], *, actor: str, reason: str, retarget: bool = False) -> list[Result]:
    """As `projection.replay.replay_many`; `retarget`: under the current version of each item's route."""
    room = replay_retargeted if retarget else replay_room.replay_many
    results = room(work_ids, actor=actor, reason=reason)
    for one in results:
        if isinstance(one, Replayed):
            audit_log.record(actor, "work.replay", one.work_id, reason, detail={"replay_work_id": one.replay_work_id})
    return results


def discard(work_id: str, *, actor: str, reason: str) -> Discarded | Refused:
    """As `projection.discard.discard`."""
    outcome = discard_room.discard(work_id, actor=actor, reason=reason)
    if isinstance(outcome, Discarded):
        audit_log.record(actor, "work.discard", work_id, reason)
    return outcome


def cancel(work_id: str, *, actor: str, reason: str) -> Cancelled | Refused:
    """As `projection.cancel.cancel`."""
    outcome = cancel_room.cancel(work_id, actor=actor, reason=reason)
    if isinstance(outcome, Cancelled):
        audit_log.record(actor, "work.cancel", work_id, reason)
    return outcome


def retry_now(work_id: str, *, actor: str, reason: str) -> Refused | None:
    """End the wait of work that waits to retry. Refused: `not_waiting`."""
    if not retry_now_room.retry_now(work_id, actor=actor):
        return Refused(work_id, "not_waiting", "It does not wait to retry; `work show` tells where it stands.")
    audit_log.record(actor, "work.retry_now", work_id, reason)
    return None


def hold(lane: NamedLane, *, actor: str, reason: str, release_at: datetime | None = None) -> bool:
    """Claim nothing of the lane until it is released, or until `release_at` (aware). False: it is held already."""
    held = lane_room.hold(lane.namespace, lane.lane_key, lane.lane, actor=actor, reason=reason, release_at=release_at)
    if held:
        ends = release_at.isoformat() if release_at else None
        audit_log.record(actor, "lane.hold", lane.lane, reason, detail={"lane_key": lane.lane_key, "release_at": ends})
    return held


def release(lane: NamedLane, *, actor: str, reason: str) -> bool:
    """Let a held lane be claimed again. False: it is not held."""
    released = lane_room.release(lane.lane_key, actor=actor)
    if released:
        audit_log.record(actor, "lane.release", lane.lane, reason, detail={"lane_key": lane.lane_key})
    return released


def try_destination(name: str, *, actor: str, reason: str) -> bool:
    """End the pause of a parked destination. False: it is not parked."""
    ended = breaker.end_park(name)
    if ended:
        audit_log.record(actor, "destination.retry", name, reason)
    return ended
