"""Replay: dead items run again as distinct items with their lineage (protocol 6). One unit for each call and namespace.

A dead item never changes. Its replay gets a replay event of its own (same payload and routing snapshot, a fresh ordinal) and the
inputs of the lineage's root. The namespace is locked first, like the router's, so two operators or a double click make one replay.
Set-based: the number of statements does not grow with the number of items.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from projection import activation, lanes
from projection.admission_rows import Fact, event_row, key_of
from projection.admit import AdmissionLock, UnknownNamespace, lock_admission
from projection.facts import InboundEvent, RouteFacts
from projection.identity import delivery_key, generation_work_id, per_event_work_id
from projection.logs import log_event
from projection.materialize import Plan, lock_ascending
from projection.models import Event, WorkItem
from projection.order import Place
from projection.refusals import Refused
from projection.replay_chains import ReplayChain, read_chains
from projection.rows import WorkRow
from projection.sending import fetch
from projection.states import ExecutionClass, State
from projection.stored import stored_facts
from projection.units import run_unit
from projection.wake import notify_after_commit

__all__ = ["Deferred", "Refused", "Replayed", "Target", "replay", "replay_many"]

OUTCOMES = {State.PROCESSED: "it succeeded", State.SKIPPED: "it was skipped"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """`work_id` is the dead item, `replay_work_id` the new one."""

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


Result = Replayed | Refused | Deferred


def replay(work_id: str, *, actor: str, reason: str, target: Target | None = None) -> Replayed | Refused:
    """Run one dead item again, under its own route version or under `target`'s.

    Refused: `not_found`, `not_dead`, `already_replayed` (naming the replay), `discarded`, `active_generation` (naming the WorkId that
    has the source), `no_class_proof`, `class_change`, `kind_change`. A dead item whose newest replay died or was cancelled is replayed
    from that one.
    """
    (result,) = replay_many([work_id], actor=actor, reason=reason, targets={work_id: target} if target else {})
    assert not isinstance(result, Deferred), "one item cannot wait for itself"  # noqa: S101 - narrows the type; no input reaches it
    return result


def replay_many(work_ids: Sequence[str], *, actor: str, reason: str, targets: Mapping[str, Target] | None = None) -> list[Result]:
    """As `replay`, for several (some hundreds at most) in one unit per namespace; one result each, in the given order.

    Replays are queued in the lane order of the dead items. Of two dead items of one source the later one is deferred.
    """
    known = tuple({work_id for work_id in work_ids if work_id.isascii()})  # no WorkId is anything else, and the column takes none
    packs = {row[0]: row[1:] for row in fetch("read_work_packs", work_ids=known)} if known else {}
    by_namespace: dict[str, list[str]] = {}
    for work_id in dict.fromkeys(work_ids):
        if work_id in packs:
            by_namespace.setdefault(packs[work_id][0], []).append(work_id)
    results: dict[str, Result] = {work_id: _not_found(work_id) for work_id in work_ids if work_id not in packs}
    for namespace, ids in by_namespace.items():
        incarnations = {packs[work_id][1]: packs[work_id][2] for work_id in ids}
        for target in (targets[work_id] for work_id in ids if targets and work_id in targets):
            incarnations[target.route.pack_id] = target.pack_incarnation
        results |= run_unit("replay", partial(_replay, namespace, ids, incarnations, targets or {}))
    for result in results.values():
        if isinstance(result, Replayed):
            log_event("replay", work_id=result.replay_work_id, replay_of_work_id=result.work_id, actor=actor, reason=reason)
    return [results[work_id] for work_id in work_ids]


def _not_found(work_id: str) -> Refused:
    return Refused(work_id, "not_found", f"there is no work item {work_id}")


def _replay(
    namespace: str, work_ids: Sequence[str], incarnations: Mapping[int, str], targets: Mapping[str, Target]
) -> dict[str, Result]:
    """The unit: lock, refuse what cannot be, insert events and items for the rest."""
    try:
        lock = lock_admission(namespace, incarnations)
    except UnknownNamespace as error:
        return {work_id: Refused(work_id, "not_found", str(error)) for work_id in work_ids}
    chains = read_chains(work_ids)
    newest = [chain.ids[-1] for chain in chains.values()]
    scope_ids = [row[0] for row in fetch("read_scopes", ids=tuple(newest))] if newest else []
    blockers = lanes.read_blockers(_lanes(newest), lock.now)
    locked = lock_ascending(
        [item for chain in chains.values() for item in chain.ids] + scope_ids + [row.id for row in blockers.values()]
    )
    results, chosen = _choose(work_ids, chains, locked, scope_ids)
    blocking = lanes.still_blocking(blockers.values(), locked, lock.now)
    return results | _insert(lock, chosen, targets, blocking)


def _lanes(ids: Sequence[int]) -> list[str]:
    return list(WorkItem.objects.filter(id__in=ids, lane_key__isnull=False).values_list("lane_key", flat=True)) if ids else []


def _choose(
    work_ids: Sequence[str], chains: Mapping[str, ReplayChain], locked: Mapping[int, WorkRow], scope_ids: Sequence[int]
) -> tuple[dict[str, Result], dict[str, WorkRow]]:
    """Refusals, and work id → the dead row to replay. Of several dead rows of one source or lineage only the first is chosen."""
    results: dict[str, Result] = {}
    chosen: dict[str, WorkRow] = {}
    active = {locked[item].scope_key: locked[item] for item in scope_ids if item in locked and locked[item].is_nonterminal}
    for work_id in work_ids:
        rows = [locked[item] for item in chains[work_id].ids if item in locked] if work_id in chains else []
        refused = _refusal(work_id, rows, active)
        if refused:
            results[work_id] = refused
        else:
            chosen[work_id] = rows[-1]
    taken: dict[str | int, str] = {}
    for work_id in sorted(chosen, key=lambda one: (chosen[one].lane_position, chosen[one].id)):
        row = chosen[work_id]
        # Per-event items of one source do not wait for each other, but an item and its own dead replay are replayed from one row.
        first = taken.setdefault(row.scope_key if row.execution_class == ExecutionClass.PROJECTION else row.id, work_id)
        if first != work_id:
            reason = f"{first} of the same source is replayed first; replay this one once that has ended"
            results[work_id] = Deferred(work_id, "same_source", reason)
            del chosen[work_id]
    return results, chosen


def _refusal(work_id: str, rows: Sequence[WorkRow], active: Mapping[str, WorkRow]) -> Refused | None:
    """Why the item (first of `rows`, its replays behind it) is not replayed; None = it is."""
    if not rows:
        return _not_found(work_id)
    dead, newest = rows[0], rows[-1]
    if dead.state is not State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {dead.state}; only dead items are replayed")
    if dead.discarded_at is not None:
        return Refused(work_id, "discarded", f"{work_id} was discarded")
    if newest is not dead and newest.state not in (State.DEAD, State.CANCELLED):
        tail = OUTCOMES.get(newest.state, f"it is {newest.state}")
        return Refused(work_id, "already_replayed", f"already replayed as {newest.work_id} ({tail})")
    blocker = active.get(newest.scope_key) if newest.execution_class == ExecutionClass.PROJECTION else None
    if blocker is not None:
        reason = f"{blocker.work_id} is active for the same source; replay again once it has ended"
        return Refused(work_id, "active_generation", reason)
    return None


def _insert(
    lock: AdmissionLock, chosen: Mapping[str, WorkRow], targets: Mapping[str, Target], blocking: dict[str, tuple[int, int]]
) -> dict[str, Result]:
    """Replay events and items, in lane order of the dead ones, with contiguous ordinals."""
    origins, results = _origins(lock, chosen, targets)
    if not origins:
        return results
    order = sorted(origins, key=lambda work_id: (chosen[work_id].lane_position, chosen[work_id].id))
    events = {work_id: _replay_event(lock.namespace, origins[work_id].inbound) for work_id in order}
    fenced = activation.is_activated()
    Event.objects.insert_events(
        [
            event_row(
                events[work_id],
                ordinal,
                lock.now,
                projection=key_of(events[work_id]),
                next_attempt_at=None,
                snapshot=origins[work_id].route.snapshot(),
                fenced=fenced,
                replay_of=origins[work_id].place.event_id,
            )
            for ordinal, work_id in enumerate(order, start=lock.next_ordinal)
        ]
    )
    last = lock.next_ordinal + len(order) - 1
    WorkItem.objects.set_next_ordinal(lock.namespace, last + 1)
    ids = Event.objects.read_event_ids(lock.namespace, lock.next_ordinal, last)
    plan = Plan(lock.now, blocking)
    for ordinal, work_id in enumerate(order, start=lock.next_ordinal):
        event, key = events[work_id], key_of(events[work_id])
        fact = Fact(event, origins[work_id].route, Place(ids[ordinal], ordinal, lock.now, event.item), key, lock.now)
        new_id = generation_work_id(key, ordinal, ids[ordinal]) if key else per_event_work_id(event.delivery_key)
        plan.add_item(fact, work_id=new_id, active_key=key, position=ordinal, replay_of=chosen[work_id].work_id)
        results[work_id] = Replayed(work_id, new_id)
    plan.write()
    notify_after_commit("claim")
    return results


def _origins(
    lock: AdmissionLock, chosen: Mapping[str, WorkRow], targets: Mapping[str, Target]
) -> tuple[dict[str, Fact], dict[str, Result]]:
    """The fact that each replay repeats, under its own or the target's route; refusals where the execution class is not proven."""
    facts = {fact.place.event_id: fact for fact in stored_facts([row.event_id for row in chosen.values()], lock.now)}
    found: dict[str, Fact] = {}
    refused: dict[str, Result] = {}
    for work_id, row in chosen.items():
        fact = facts.get(row.event_id)
        if fact is None or bool(fact.projection_key) != (row.execution_class == ExecutionClass.PROJECTION):
            reason = "its event has no route snapshot that proves its execution class, or contradicts it"
            refused[work_id] = Refused(work_id, "no_class_proof", reason)
            continue
        if work_id in targets and targets[work_id].route.event_kind != fact.route.event_kind:
            reason = f"route {fact.route.key} now makes {targets[work_id].route.event_kind}, not {fact.route.event_kind}"
            refused[work_id] = Refused(work_id, "kind_change", reason)
            continue
        fact = _retargeted(fact, targets[work_id]) if work_id in targets else fact
        if bool(key_of(fact.inbound)) != (row.execution_class == ExecutionClass.PROJECTION):
            reason = f"route {fact.route.key} v{fact.route.version} would change its execution class"
            refused[work_id] = Refused(work_id, "class_change", reason)
        else:
            found[work_id] = fact
    return found, refused


def _retargeted(fact: Fact, target: Target) -> Fact:
    inbound = replace(fact.inbound, route=target.route, pack_id=target.route.pack_id, pack_incarnation=target.pack_incarnation)
    return replace(fact, inbound=inbound, route=target.route)


def _replay_event(namespace: str, origin: InboundEvent) -> InboundEvent:
    delivery_id = f"replay:{uuid.uuid4()}"
    key = delivery_key(namespace, origin.pack_name, delivery_id, origin.route.key if origin.route else "")
    return replace(origin, delivery_id=delivery_id, delivery_key=key)
