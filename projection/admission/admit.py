"""Admit: accepted events become immutable facts and executable work, in the admitted transaction
(docs/protocol.md#admitted-transaction).

Joins its caller's transaction (the router's; replay, sweep and repair come the same way). The caller has locked the namespace
(`lock_admission`) and its receipts; after an error it rolls back, so that the batch commits whole or not at all.

Set-based throughout: the number of statements grows with chunks, not with events or sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projection.admission import activation, settle
from projection.admission.coverage import Known, find_known, uncovered
from projection.admission.materialize import Stages, materialize
from projection.admission.rows import Fact, event_row, key_of
from projection.admission.stored_events import stored_facts
from projection.facts import InboundEvent
from projection.models import Event, WorkItem
from projection.order import Place
from projection.runtime.wake_up import notify_after_commit

REMOVED: Final = "removed"
"""State of a pack row that an upgrade replaced, or an operator removed."""


class UnknownNamespace(LookupError):
    """The namespace does not exist (any more); create it by installing a pack into it."""


class TargetLaneConflict(ValueError):
    """A projection route names a target mutation lane (docs/protocol.md#target-lane); publish it without one, or per event, then
    re-route.
    """


class StaleIncarnation(RuntimeError):
    """A pack was upgraded after its routes were read; read the routes again and start over (not an error for an operator)."""


@dataclass(frozen=True, slots=True)
class AdmissionLock:
    """Proof that the namespace row is locked: where its ordinals continue, and the database's time after the lock."""

    namespace: str
    next_ordinal: int
    now: datetime
    removed: frozenset[int] = frozenset()
    """Those of the locked packs that are replaced by an upgrade, or removed."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What one admission did. `events` and `duplicates` count per receipt id; `conflicts` lists duplicates with another payload."""

    events: Mapping[int, int]
    duplicates: Mapping[int, int]
    conflicts: Sequence[Known]
    erased: Mapping[int, int]
    """Receipt id → erasure: receipts that bring again what was erased, so that their bodies must not stay."""
    repaired: int
    stages: Mapping[str, float]
    """Seconds of prepare, settle, facts, projections and lanes."""


def lock_admission(namespace: str, incarnations: Mapping[int, str]) -> AdmissionLock:
    """Lock the namespace, then the packs, and check that their incarnations are those that the routes were read for.

    Raises UnknownNamespace, or StaleIncarnation when a pack was upgraded meanwhile. Two statements; the clock is read by the second
    one, after every earlier admission of the namespace has committed.
    """
    next_ordinal = WorkItem.objects.lock_namespace(namespace)
    if next_ordinal is None:
        raise UnknownNamespace(f"namespace {namespace!r} does not exist")
    packs = WorkItem.objects.lock_packs(incarnations)
    found = {pack_id: incarnation for pack_id, incarnation, _, _ in packs}
    if found != dict(incarnations):
        changed = sorted(pack_id for pack_id, incarnation in incarnations.items() if found.get(pack_id) != incarnation)
        raise StaleIncarnation(f"packs {changed} of namespace {namespace!r} were removed or upgraded since they were read")
    removed = frozenset(pack_id for pack_id, _, state, _ in packs if state == REMOVED)
    return AdmissionLock(namespace, next_ordinal, packs[0][3], removed)


def admit(lock: AdmissionLock, events: Sequence[InboundEvent]) -> Admitted:
    """Admit `events` in the given order under `lock`. Events whose delivery is known change nothing, or repair exactly the missing task.

    Raises TargetLaneConflict, Ambiguous, UnsafeReplacement, or the database's error: the caller must then roll back.
    """
    stages = Stages()
    _refuse_target_lanes(events)
    fresh, known = find_known(events)
    missing = uncovered(known)
    stages.end("prepare")
    deadlines = settle.deadlines(fresh, lock.now)
    stages.end("settle")
    facts = _insert_facts(lock, fresh, deadlines)
    stages.end("facts")
    repairs = stored_facts(missing, lock.now)
    materialize(lock.now, [*repairs, *facts], stages)
    if facts or repairs:
        notify_after_commit("claim")
    return Admitted(
        events=Counter(event.receipt_id for event in fresh),
        duplicates=Counter(item.inbound.receipt_id for item in known),
        conflicts=[item for item in known if item.is_conflict and item.erasure_id is None],
        erased={item.inbound.receipt_id: item.erasure_id for item in known if item.erasure_id is not None},
        repaired=len(repairs),
        stages=stages.seconds,
    )


def _refuse_target_lanes(events: Sequence[InboundEvent]) -> None:
    for event in events:
        if event.is_projected and event.target_lane and event.route is not None:
            raise TargetLaneConflict(
                f"route {event.route.key} v{event.route.version} is a projection and cannot have target lane {event.target_lane!r}"
            )


def _insert_facts(lock: AdmissionLock, fresh: Sequence[InboundEvent], deadlines: Mapping[str, datetime]) -> list[Fact]:
    """Insert every fresh event with contiguous ordinals; the facts of the routed ones."""
    if not fresh:
        return []
    fenced = activation.is_activated()
    routes = {event.route.id: event.route for event in fresh if event.route}
    snapshots = {route_id: route.snapshot() for route_id, route in routes.items()}
    rows, pending = [], []
    for ordinal, event in enumerate(fresh, start=lock.next_ordinal):
        key = key_of(event)
        deadline = deadlines.get(key) if key else None
        next_attempt_at = deadline if fenced or deadline else lock.now
        snapshot = snapshots[event.route.id] if event.route else None
        rows.append(
            event_row(event, ordinal, lock.now, projection=key, next_attempt_at=next_attempt_at, snapshot=snapshot, fenced=fenced)
        )
        if event.route:
            pending.append((ordinal, event, event.route, key, deadline or lock.now))
    Event.objects.insert_events(rows)
    last = lock.next_ordinal + len(fresh) - 1
    WorkItem.objects.set_next_ordinal(lock.namespace, last + 1)
    ids = Event.objects.read_event_ids(lock.namespace, lock.next_ordinal, last) if pending else {}
    return [
        Fact(event, route, Place(ids[ordinal], ordinal, lock.now, event.item), key, run_after)
        for ordinal, event, route, key, run_after in pending
    ]
