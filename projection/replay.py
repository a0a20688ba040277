"""Replay: a dead item runs again as a distinct item with its lineage (protocol 6). A unit of its own per item.

The dead item never changes. Its replay gets a replay event of its own (same payload and routing snapshot, a fresh ordinal) and the
inputs of the lineage's root. One replay at a time: the namespace is locked first, like the router's.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from projection import activation, lanes
from projection.admission_rows import Fact, event_row, lane_of, work_row
from projection.admit import AdmissionLock, UnknownNamespace, lock_admission
from projection.identity import delivery_key, generation_work_id, per_event_work_id
from projection.logs import log_event
from projection.models import Event, WorkItem
from projection.order import Place
from projection.refusals import Refused
from projection.rows import WorkRow
from projection.sending import fetch
from projection.states import ExecutionClass, State
from projection.stored import MissingProof, stored_facts
from projection.units import run_unit
from projection.wake import notify_after_commit

__all__ = ["Refused", "Replayed", "replay"]

NEXT_STEP = {
    State.PROCESSED: "it succeeded",
    State.SKIPPED: "it was skipped",
}


@dataclass(frozen=True, slots=True)
class Replayed:
    """`work_id` is the dead item, `replay_work_id` the new one."""

    work_id: str
    replay_work_id: str


def replay(work_id: str, *, actor: str, reason: str) -> Replayed | Refused:
    """Run a dead item again under the same route version.

    Refused: `not_found`, `not_dead`, `already_replayed` (naming the replay), `discarded`, `active_generation` (naming the WorkId that
    has the scope), `no_class_proof`. A dead item whose newest replay died or was cancelled is replayed from that one.
    """
    namespace = WorkItem.objects.filter(work_id=work_id).values_list("namespace", flat=True).first()
    if namespace is None:
        return Refused(work_id, "not_found", f"there is no work item {work_id}")
    outcome = run_unit("replay", lambda: _replay(namespace, work_id))
    if isinstance(outcome, Replayed):
        log_event("replay", work_id=outcome.replay_work_id, replay_of_work_id=work_id, actor=actor, reason=reason)
    return outcome


def _replay(namespace: str, work_id: str) -> Replayed | Refused:
    pack_id, incarnation = fetch("read_work_pack", work_id=work_id)[0]
    try:
        lock = lock_admission(namespace, {pack_id: incarnation})
    except UnknownNamespace as error:
        return Refused(work_id, "not_found", str(error))
    lineage = _lineage(work_id)
    if isinstance(lineage, Refused):
        return lineage
    dead = lineage[-1]
    blocker = _active_in_scope(dead)
    if blocker:
        return Refused(work_id, "active_generation", f"{blocker} is active for the same source; replay again once it has ended")
    try:
        fact = stored_facts([dead.event_id], lock.now)[0]
    except MissingProof as error:
        return Refused(work_id, "no_class_proof", f"its execution class cannot be proven: {error}")
    if bool(fact.projection_key) != (dead.execution_class == ExecutionClass.PROJECTION):
        return Refused(work_id, "no_class_proof", "its event and its work item disagree about the execution class")
    return Replayed(work_id, _materialize(lock, dead, fact))


def _lineage(work_id: str) -> list[WorkRow] | Refused:
    """The dead item and its replays, locked, ending with the one to replay; or why there is none."""
    found: list[WorkRow] = []
    current: str | None = work_id
    while current is not None:
        ids = list(WorkItem.objects.filter(work_id=current).values_list("id", flat=True))
        rows = WorkItem.objects.lock_work_items(ids) if ids else []
        if not rows:
            return Refused(work_id, "not_found", f"there is no work item {current}")
        row = rows[0]
        refusal = _refusal(work_id, row, is_first=not found)
        if refusal:
            return refusal
        found.append(row)
        current = WorkItem.objects.filter(replay_of_work_id=row.work_id).values_list("work_id", flat=True).first()
    return found


def _refusal(work_id: str, row: WorkRow, *, is_first: bool) -> Refused | None:
    """Why `row` (the item itself, or one of its replays) stands in the way of a replay."""
    if is_first and row.state is not State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {row.state}; only dead items are replayed")
    if is_first and WorkItem.objects.filter(id=row.id, discarded_at__isnull=False).exists():
        return Refused(work_id, "discarded", f"{work_id} was discarded")
    if not is_first and row.state not in (State.DEAD, State.CANCELLED):
        tail = NEXT_STEP.get(row.state, f"it is {row.state}")
        return Refused(work_id, "already_replayed", f"already replayed as {row.work_id} ({tail})")
    return None


def _active_in_scope(dead: WorkRow) -> str | None:
    """WorkId of another nonterminal generation of the source scope, locked; per-event items only queue in their lane."""
    if dead.execution_class != ExecutionClass.PROJECTION:
        return None
    ids = [row[0] for row in fetch("read_scope", scope_key=dead.scope_key)]
    rows: Sequence[WorkRow] = WorkItem.objects.lock_work_items(ids) if ids else []
    return next((row.work_id for row in rows if row.is_nonterminal), None)


def _materialize(lock: AdmissionLock, dead: WorkRow, origin: Fact) -> str:
    """Insert the replay event and its work item; the new WorkId."""
    route = origin.route
    delivery_id = f"replay:{uuid.uuid4()}"
    key = delivery_key(lock.namespace, origin.inbound.pack_name, delivery_id, route.key)
    event = replace(origin.inbound, delivery_id=delivery_id, delivery_key=key)
    ordinal = lock.next_ordinal
    row = event_row(
        event,
        ordinal,
        lock.now,
        projection=origin.projection_key,
        next_attempt_at=None,
        snapshot=route.snapshot(),
        fenced=activation.is_activated(),
        replay_of=origin.place.event_id,
    )
    Event.objects.insert_events([row])
    WorkItem.objects.set_next_ordinal(lock.namespace, ordinal + 1)
    event_id = Event.objects.read_event_ids(lock.namespace, ordinal, ordinal)[ordinal]
    fact = Fact(event, route, Place(event_id, ordinal, lock.now, event.item), origin.projection_key, lock.now)
    work_id = generation_work_id(fact.projection_key, ordinal, event_id) if fact.projection_key else per_event_work_id(key)
    state = _state_in_lane(lane_of(event, route), lock)
    WorkItem.objects.insert_work_items(
        [
            work_row(
                fact,
                work_id=work_id,
                active_key=fact.projection_key,
                state=state,
                now=lock.now,
                position=ordinal,
                replay_of=dead.work_id,
            )
        ]
    )
    notify_after_commit("claim")
    return work_id


def _state_in_lane(lane: str | None, lock: AdmissionLock) -> State:
    """`blocked` behind the lane's blocking row, locked and read again; else `pending`."""
    if lane is None:
        return State.PENDING
    blockers = lanes.read_blockers([lane], lock.now)
    locked = {row.id: row for row in WorkItem.objects.lock_work_items(row.id for row in blockers.values())} if blockers else {}
    return State.BLOCKED if lanes.still_blocking(blockers.values(), locked, lock.now) else State.PENDING
