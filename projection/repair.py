"""Repair: make missing work again, hand off what was left queued, move stranded lanes (protocol 2, Rematerialization; 7).

Nothing of this happens in a healthy system; `audit` tells whether it did. Candidates are read without locks and checked again in a
unit that takes the namespace lock first, like the router. An event is never routed anew: its own route snapshot decides (S 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from projection import lanes
from projection.admit import lock_admission
from projection.coverage import uncovered_events
from projection.event_pages import event_pages
from projection.logs import log_event
from projection.materialize import Stages, materialize
from projection.models import Event, WorkItem
from projection.sending import chunks, fetch
from projection.stored import stored_facts
from projection.units import run_unit
from projection.wake import notify_after_commit

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Repaired:
    """How many of each were put right (or, in a dry run, would be)."""

    missing_tasks: int
    handoffs: int
    lanes: int


def repair(*, dry_run: bool = False) -> Repaired:
    """Put right what only a fault can have left behind; a dry run counts the same and changes nothing."""
    return Repaired(
        missing_tasks=sum(_remake(group, dry_run=dry_run) for group in _events_without_work()),
        handoffs=_hand_off(dry_run=dry_run),
        lanes=_move_lanes(dry_run=dry_run),
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Events of one namespace whose work may be missing, with their packs' incarnations."""

    namespace: str
    packs: dict[int, str]
    event_ids: list[int]


def _events_without_work() -> Iterator[_Group]:
    for after, through in event_pages():
        rows = fetch("read_events_without_work", after=after, through=through)
        by_namespace: dict[str, list[tuple[int, int, str]]] = {}
        for event_id, namespace, pack_id, incarnation in rows:
            by_namespace.setdefault(namespace, []).append((event_id, pack_id, incarnation))
        for namespace, found in by_namespace.items():
            for chunk in chunks(found, BATCH):
                yield _Group(namespace, {pack: incarnation for _, pack, incarnation in chunk}, [row[0] for row in chunk])


def _remake(group: _Group, *, dry_run: bool) -> int:
    """Make the missing work of a group; number of events that lacked it."""

    def unit() -> int:
        lock = lock_admission(group.namespace, group.packs)
        missing = uncovered_events(Event.objects.read_known_events(group.event_ids))
        if missing and not dry_run:
            materialize(lock.now, stored_facts(missing, lock.now), Stages())
            notify_after_commit("claim")
            log_event("repair", namespace=group.namespace, count=len(missing), reason="missing tasks")
        return len(missing)

    return run_unit("repair", unit)


def _hand_off(*, dry_run: bool) -> int:
    """Activate queued successors that stand alone; number of them."""

    def unit() -> int:
        ids = [row[0] for row in fetch("read_lost_handoffs", limit=BATCH)]
        locked = [row for row in WorkItem.objects.lock_work_items(ids) if row.is_successor] if ids else []
        if locked and not dry_run:
            WorkItem.objects.activate_generations([row.id for row in locked])
            for row in locked:
                log_event("handoff_repaired", work_id=row.work_id, projection_key=row.projection_key)
            notify_after_commit("claim")
        return len(locked)

    return _until_done(unit, dry_run=dry_run)


def _move_lanes(*, dry_run: bool) -> int:
    """Unblock the first row of each stranded lane; number of lanes."""

    def unit() -> int:
        ids = [row[0] for row in fetch("read_stranded_lanes", limit=BATCH)]
        if dry_run or not ids:
            return len(ids)
        moved = lanes.unblock_next(ids)
        log_event("repair", count=moved, reason="stranded lanes")
        notify_after_commit("claim")
        return moved

    return _until_done(unit, dry_run=dry_run)


def _until_done(unit: Callable[[], int], *, dry_run: bool) -> int:
    """Repeat a unit of at most BATCH rows while it finds a full batch."""
    total = 0
    while True:
        found = run_unit("repair", unit)
        total += found
        if found < BATCH or dry_run:
            return total
