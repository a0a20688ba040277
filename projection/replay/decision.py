"""Whether a dead item is replayed: functions of values, used by the replay itself (on locked rows) and by its preview
(docs/protocol.md#replay).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from projection.facts import RouteFacts
from projection.refusals import Refused
from projection.rows import WorkRow
from projection.states import ExecutionClass, State

OUTCOMES = {State.PROCESSED: "it succeeded", State.SKIPPED: "it was skipped"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """`work_id` is the dead item, `replay_work_id` the new one (empty in a preview)."""

    work_id: str
    replay_work_id: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """Another dead item of the same source is replayed by the same call; ask again once its replay has ended."""

    id: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Target:
    """Where a replay is retargeted to: another route version or pack incarnation. None of it changes the execution class."""

    route: RouteFacts
    pack_incarnation: str
    target_lane: str = ""
    """The target mutation lane of the item's event under the route; empty = none."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the selected event of a dead item proves: the route that took it, and whether it belongs to a projection."""

    route: RouteFacts
    is_projected: bool
    source_lane: str


Result = Replayed | Refused | Deferred


def not_found(work_id: str) -> Refused:
    return Refused(work_id, "not_found", f"there is no work item {work_id}")


def active_by_scope(rows: Iterable[WorkRow]) -> dict[str, WorkRow]:
    """Source scope → a nonterminal generation of it, of the given rows."""
    return {row.scope_key: row for row in rows if row.is_nonterminal}


def open_to_replay(
    chains: Mapping[str, Sequence[WorkRow]], active: Mapping[str, WorkRow]
) -> tuple[dict[str, Result], dict[str, WorkRow]]:
    """Refusals by the items' states, and work id → the dead row to replay. `chains`: each item with its replays behind it."""
    refused: dict[str, Result] = {}
    chosen: dict[str, WorkRow] = {}
    for work_id, rows in chains.items():
        refusal = _refusal(work_id, rows, active)
        if refusal:
            refused[work_id] = refusal
        else:
            chosen[work_id] = rows[-1]
    return refused, chosen


def _refusal(work_id: str, rows: Sequence[WorkRow], active: Mapping[str, WorkRow]) -> Refused | None:
    if not rows:
        return not_found(work_id)
    dead, newest = rows[0], rows[-1]
    if dead.state is not State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {dead.state}; only dead letters can be replayed")
    if dead.discarded_at is not None:
        return Refused(work_id, "discarded", f"{work_id} is discarded; restore it first (`dlq restore`), then replay it")
    if newest is not dead and newest.state not in (State.DEAD, State.CANCELLED):
        tail = OUTCOMES.get(newest.state, f"it is {newest.state}")
        return Refused(work_id, "already_replayed", f"already replayed as {newest.work_id} ({tail})")
    blocker = active.get(newest.scope_key) if newest.execution_class == ExecutionClass.PROJECTION else None
    if blocker is not None:
        reason = f"{blocker.work_id} is already open for the same record; replay again after it has ended"
        return Refused(work_id, "active_generation", reason)
    return None


def class_refusal(work_id: str, row: WorkRow, origin: Origin | None, target: Target | None) -> Refused | None:
    """Why the row's execution class is not proven, or would change under the target; None = neither."""
    is_projection = row.execution_class == ExecutionClass.PROJECTION
    if origin is None or origin.is_projected != is_projection:
        reason = "the route of its event is not stored or does not fit it, so it cannot be replayed safely; run `audit`"
        return Refused(work_id, "no_class_proof", reason)
    route = target.route if target else origin.route
    way_out = "; replay without --retarget" if target else "; run `audit`"
    if route.event_kind != origin.route.event_kind:
        reason = f"route {origin.route.key} now emits {route.event_kind} instead of {origin.route.event_kind}{way_out}"
        return Refused(work_id, "kind_change", reason)
    if (route.is_projection and origin.source_lane != "") != is_projection:
        return Refused(work_id, "class_change", f"route {route.key} v{route.version} would run it in another mode{way_out}")
    return None


def first_of_each(
    chosen: Mapping[str, WorkRow], taken: Iterable[tuple[str, str]] = ()
) -> tuple[dict[str, WorkRow], dict[str, Result]]:
    """Of several dead rows of one source or lineage only the first in lane order is replayed; the rest is deferred.

    `taken`: scopes, each with the WorkId that goes first in it already.
    """
    holders: dict[str | int, str] = dict(taken)
    first: dict[str, WorkRow] = {}
    deferred: dict[str, Result] = {}
    for work_id in in_lane_order(chosen):
        row = chosen[work_id]
        # Per-event items of one source do not wait for each other, but an item and its own dead replay are replayed from one row.
        holder = holders.setdefault(row.scope_key if row.execution_class == ExecutionClass.PROJECTION else row.id, work_id)
        if holder == work_id:
            first[work_id] = row
        else:
            reason = f"{holder} of the same record is replayed first; this one can be replayed when that replay has ended"
            deferred[work_id] = Deferred(work_id, "same_source", reason)
    return first, deferred


def in_lane_order(chosen: Mapping[str, WorkRow]) -> list[str]:
    return sorted(chosen, key=lambda work_id: (chosen[work_id].lane_position, chosen[work_id].id))
