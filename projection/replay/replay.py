"""Replay: dead items run again as distinct items with their lineage (docs/protocol.md#replay). One unit for each call and
namespace.

A dead item never changes. Its replay gets a replay event of its own (same payload and routing snapshot, a fresh ordinal) and the
inputs of the lineage's root. The namespace is locked first, like the router's, so two operators or a double click make one replay.
Set-based: the number of statements does not grow with the number of items.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from projection.admission import activation
from projection.admission.admit import AdmissionLock, UnknownNamespace, lock_admission
from projection.admission.materialize import Plan, lock_ascending
from projection.admission.rows import Fact, event_row, key_of
from projection.admission.stored_events import stored_facts
from projection.completion import lanes
from projection.database.catalogue import fetch
from projection.database.transactions import run_unit
from projection.facts import InboundEvent
from projection.identity import delivery_key, generation_work_id, item_key, per_event_work_id
from projection.inputs.replay_chains import read_chains, read_scope_ids
from projection.logs import log_event
from projection.models import Event, WorkItem
from projection.order import Place
from projection.refusals import Refused
from projection.replay.decision import (
    Deferred,
    Origin,
    Replayed,
    Result,
    Target,
    active_by_scope,
    class_refusal,
    first_of_each,
    in_lane_order,
    not_found,
    open_to_replay,
)
from projection.retention.erasure import erased_refusal, erased_work
from projection.rows import WorkRow
from projection.runtime.wake_up import notify_after_commit

Note = Callable[[dict[str, Result]], object]
"""Told of the results of one unit, by WorkId, in its transaction (`run_unit`)."""


def replay(work_id: str, *, actor: str, reason: str, target: Target | None = None) -> Replayed | Refused:
    """Run one dead item again, under its own route version or under `target`'s.

    Refused: `not_found`, `not_dead`, `already_replayed` (naming the replay), `discarded`, `active_generation` (naming the WorkId that
    has the source), `erased`, `no_class_proof`, `class_change`, `kind_change`. A dead item whose newest replay died or was cancelled is
    replayed from that one.
    """
    (result,) = replay_many([work_id], actor=actor, reason=reason, targets={work_id: target} if target else {})
    assert not isinstance(result, Deferred), "one item cannot wait for itself"  # noqa: S101 - narrows the type; no input reaches it
    return result


def replay_many(
    work_ids: Sequence[str],
    *,
    actor: str,
    reason: str,
    targets: Mapping[str, Target] | None = None,
    note: Note | None = None,
) -> list[Result]:
    """As `replay`, for several (some hundreds at most) in one unit per namespace; one result each, in the given order.

    Replays are queued in the lane order of the dead items. Of two dead items of one source the later one is deferred.
    """
    packs = read_work_packs(work_ids)
    by_namespace: dict[str, list[str]] = {}
    for work_id in dict.fromkeys(work_ids):
        if work_id in packs:
            by_namespace.setdefault(packs[work_id].namespace, []).append(work_id)
    results: dict[str, Result] = {work_id: not_found(work_id) for work_id in work_ids if work_id not in packs}
    for namespace, ids in by_namespace.items():
        incarnations = incarnations_of(ids, packs, targets or {})
        done: dict[str, Result] = run_unit("replay", partial(replay_locked, namespace, ids, incarnations, targets or {}), note=note)
        results |= done
    log_replays(results.values(), actor=actor, reason=reason)
    return [results[work_id] for work_id in work_ids]


@dataclass(frozen=True, slots=True)
class WorkPack:
    """Where an item came in by: its namespace, and the pack that it is replayed under where nothing retargets it."""

    namespace: str
    pack_id: int
    incarnation: str


def read_work_packs(work_ids: Sequence[str]) -> dict[str, WorkPack]:
    """WorkId → its pack; unknown ones are left out. One statement."""
    known = tuple({work_id for work_id in work_ids if work_id.isascii()})  # no WorkId is anything else, and the column takes none
    return {row[0]: WorkPack(*row[1:]) for row in fetch("read_work_packs", work_ids=known)} if known else {}


def incarnations_of(work_ids: Sequence[str], packs: Mapping[str, WorkPack], targets: Mapping[str, Target]) -> dict[int, str]:
    """Pack id → incarnation of all packs that the replays of the items need locked."""
    own = {packs[work_id].pack_id: packs[work_id].incarnation for work_id in work_ids}
    aims = [targets[work_id] for work_id in work_ids if work_id in targets]
    return own | {target.route.pack_id: target.pack_incarnation for target in aims}


def log_replays(results: Iterable[Result], *, actor: str, reason: str) -> None:
    for result in results:
        if isinstance(result, Replayed):
            log_event("replay", work_id=result.replay_work_id, replay_of_work_id=result.work_id, actor=actor, reason=reason)


def replay_locked(
    namespace: str, work_ids: Sequence[str], incarnations: Mapping[int, str], targets: Mapping[str, Target]
) -> dict[str, Result]:
    """Replay items of one namespace in the caller's transaction: lock, refuse what cannot be, insert events and items for the rest.

    Raises StaleIncarnation when a pack is another one by now, or the database's error: the caller rolls back.
    """
    try:
        lock = lock_admission(namespace, incarnations)
    except UnknownNamespace as error:
        return {work_id: Refused(work_id, "not_found", str(error)) for work_id in work_ids}
    chains = read_chains(work_ids)
    newest = [chain.ids[-1] for chain in chains.values()]
    scope_ids = read_scope_ids(newest)
    blockers = lanes.read_blockers(_lanes(newest), lock.now)
    locked = lock_ascending(
        [item for chain in chains.values() for item in chain.ids] + scope_ids + [row.id for row in blockers.values()]
    )
    rows = {work_id: [locked[i] for i in chains[work_id].ids if i in locked] if work_id in chains else [] for work_id in work_ids}
    results, chosen = open_to_replay(rows, active_by_scope(locked[item] for item in scope_ids if item in locked))
    origins, refused = _origins(lock, chosen, targets)
    chosen, deferred = first_of_each({work_id: chosen[work_id] for work_id in origins})
    blocking = lanes.still_blocking(blockers.values(), locked, lock.now)
    return results | refused | deferred | _insert(lock, chosen, origins, blocking)


def _lanes(ids: Sequence[int]) -> list[str]:
    return list(WorkItem.objects.filter(id__in=ids, lane_key__isnull=False).values_list("lane_key", flat=True)) if ids else []


def _insert(
    lock: AdmissionLock, chosen: Mapping[str, WorkRow], origins: Mapping[str, Fact], blocking: dict[str, tuple[int, int]]
) -> dict[str, Result]:
    """Replay events and items, in lane order of the dead ones, with contiguous ordinals."""
    if not chosen:
        return {}
    results: dict[str, Result] = {}
    order = in_lane_order(chosen)
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
    stored = stored_facts([row.event_id for row in chosen.values()], lock.now, payloads=True)
    facts = {fact.place.event_id: fact for fact in stored}
    found: dict[str, Fact] = {}
    refused: dict[str, Result] = {}
    erased = erased_work(chosen.values())
    for work_id, row in chosen.items():
        fact, target = facts.get(row.event_id), targets.get(work_id)
        origin = Origin(fact.route, bool(fact.projection_key), fact.inbound.source_lane) if fact else None
        refusal = erased_refusal(work_id) if row.id in erased else class_refusal(work_id, row, origin, target)
        if refusal:
            refused[work_id] = refusal
        elif fact:
            found[work_id] = _retargeted(fact, target) if target else fact
    return found, refused


def _retargeted(fact: Fact, target: Target) -> Fact:
    inbound = replace(
        fact.inbound,
        route=target.route,
        pack_id=target.route.pack_id,
        pack_incarnation=target.pack_incarnation,
        target_lane=target.target_lane,
    )
    return replace(fact, inbound=inbound, route=target.route)


def _replay_event(namespace: str, origin: InboundEvent) -> InboundEvent:
    delivery_id = f"replay:{uuid.uuid4()}"
    item = item_key(namespace, origin.pack_name, origin.account, "replay", delivery_id)
    key = delivery_key(item, origin.route.key if origin.route else "")
    return replace(origin, delivery_id=delivery_id, delivery_key=key)
