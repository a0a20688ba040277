"""Repair: make missing work again, hand off what was left queued, move stranded lanes (docs/protocol.md#stored-events).

Nothing of this happens in a healthy system; `audit` tells whether it did. Candidates are read without locks and checked again in a
unit that takes the namespace lock first, like the router. An event is never routed again: its own route snapshot decides. A
projection that cannot be put right is refused with the reason, and keeps no other from being repaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from projection.admission.admit import StaleIncarnation, lock_admission
from projection.admission.coverage import uncovered_events
from projection.admission.input_loss import UnsafeReplacement
from projection.admission.materialize import Stages, materialize
from projection.admission.stored_events import stored_facts
from projection.completion import lanes
from projection.database.bisecting import run_bisecting
from projection.database.catalogue import chunks, fetch
from projection.database.transactions import run_unit
from projection.integrity.event_pages import event_pages
from projection.logs import log_event
from projection.models import Event, WorkItem
from projection.refusals import Ambiguous, Refused
from projection.rows import KnownEvent
from projection.runtime.wake_up import notify_after_commit
from projection.safe_text import error_text

BATCH: Final = 500
CODES: Final[dict[type[Exception], str]] = {
    UnsafeReplacement: "unsafe_replacement",
    Ambiguous: "ambiguous",
    StaleIncarnation: "pack_changed",
}
"""Of refusals, by their cause; anything else is `failed`."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """How many of each were put right (or, in a dry run, would be), and what could not be."""

    missing_tasks: int = 0
    handoffs: int = 0
    lanes: int = 0
    refused: tuple[Refused, ...] = ()
    """By event or WorkId: `unsafe_replacement`, `ambiguous`, `pack_changed`, `no_route_snapshot`, `erased`, `failed`."""

    def __add__(self, other: Repaired) -> Repaired:
        return Repaired(
            self.missing_tasks + other.missing_tasks,
            self.handoffs + other.handoffs,
            self.lanes + other.lanes,
            self.refused + other.refused,
        )


def repair(*, dry_run: bool = False) -> Repaired:
    """Put right what only a fault can have left behind; a dry run counts the same and changes nothing."""
    total = Repaired()
    for group in _events_without_work():
        total += _remake(group, dry_run=dry_run)
    return total + _hand_off(dry_run=dry_run) + _move_lanes(dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An event whose work may be missing."""

    event_id: int
    namespace: str
    pack_id: int
    incarnation: str
    projection_key: str | None
    ordinal: int


_Part = Sequence[_Candidate]
"""What is put right together or not at all: the candidates of one projection, or one of a per-event route."""


def _events_without_work() -> Iterator[list[_Part]]:
    """Parts of one namespace, in the order of admission, a batch at a time."""
    for after, through in event_pages():
        by_namespace: dict[str, list[_Candidate]] = {}
        for row in fetch("read_events_without_work", after=after, through=through):
            candidate = _Candidate(*row)
            by_namespace.setdefault(candidate.namespace, []).append(candidate)
        for found in by_namespace.values():
            yield from map(_parts, chunks(found, BATCH))


def _parts(candidates: Sequence[_Candidate]) -> list[_Part]:
    parts: dict[str | int, list[_Candidate]] = {}
    for one in sorted(candidates, key=lambda one: (one.ordinal, one.event_id)):
        parts.setdefault(one.projection_key or one.event_id, []).append(one)
    return list(parts.values())


def _remake(parts: Sequence[_Part], *, dry_run: bool) -> Repaired:
    """Make the missing work of one namespace's parts."""
    refused: list[Refused] = []

    def at_fault(part: _Part, error: Exception) -> None:
        log_event("repair", level="error", namespace=part[0].namespace, event_id=part[-1].event_id, error=error_text(error))
        refused.append(refused_by(part[-1].event_id, error))

    done = run_bisecting("repair", parts, partial(_remake_unit, dry_run=dry_run), at_fault)
    return sum(done, Repaired(refused=tuple(refused)))


def refused_by(id: int | str, error: Exception) -> Refused:
    """Why an event's work, or an item, could not be put right."""
    return Refused(str(id), CODES.get(type(error), "failed"), error_text(error))


def _remake_unit(parts: Sequence[_Part], *, dry_run: bool) -> Repaired:
    candidates = [one for part in parts for one in part]
    namespace = candidates[0].namespace
    lock = lock_admission(namespace, {one.pack_id: one.incarnation for one in candidates})
    known = {row.id: row for row in Event.objects.read_known_events([one.event_id for one in candidates])}
    missing = uncovered_events(list(known.values()))
    facts = stored_facts(missing, lock.now)
    materialize(lock.now, facts, Stages(), dry_run=dry_run)
    if facts and not dry_run:
        notify_after_commit("claim")
        log_event("repair", namespace=namespace, count=len(facts), reason="missing work recreated")
    made = {fact.place.event_id for fact in facts}
    return Repaired(missing_tasks=len(facts), refused=tuple(_without_fact(known[one]) for one in missing if one not in made))


def _without_fact(event: KnownEvent) -> Refused:
    if event.erasure_id is not None:
        return Refused(str(event.id), "erased", f"event {event.id} was erased, so its work cannot be recreated")
    return Refused(
        str(event.id),
        "no_route_snapshot",
        f"event {event.id} does not record which route it matched, so its work cannot be recreated",
    )


def _hand_off(*, dry_run: bool) -> Repaired:
    """Activate queued successors that stand alone."""
    total, after = Repaired(), 0
    while rows := fetch("read_lost_handoffs", after=after, limit=BATCH):
        after = rows[-1][0]
        refused: list[Refused] = []

        def at_fault(row: tuple[int, str], error: Exception, refused: list[Refused] = refused) -> None:
            log_event("repair", level="error", work_id=row[1], error=error_text(error))
            refused.append(refused_by(row[1], error))

        done = run_bisecting("repair", rows, partial(_hand_off_unit, dry_run=dry_run), at_fault)
        total += Repaired(handoffs=sum(done), refused=tuple(refused))
    return total


def _hand_off_unit(rows: Sequence[tuple[int, str]], *, dry_run: bool) -> int:
    """`rows`: (id, WorkId). Number of successors. Raises Ambiguous where a projection has several: nobody can tell which one follows."""
    locked = [row for row in WorkItem.objects.lock_work_items([row[0] for row in rows]) if row.is_successor]
    keys = sorted({row.projection_key for row in locked if row.projection_key})
    if keys and len(WorkItem.objects.read_successors(keys)) > len(keys):
        raise Ambiguous(
            f"more than one queued generation and none active in the projection of {rows[0][1]}; run `audit`, which lists them"
        )
    if locked and not dry_run:
        WorkItem.objects.activate_generations([row.id for row in locked])
        for row in locked:
            log_event("handoff_repaired", work_id=row.work_id, projection_key=row.projection_key)
        notify_after_commit("claim")
    return len(locked)


def _move_lanes(*, dry_run: bool) -> Repaired:
    """Unblock the first row of each stranded lane."""
    total, after = 0, ""
    while rows := fetch("read_stranded_lanes", after=after, limit=BATCH):
        after = rows[-1][0]
        total += len(rows) if dry_run else run_unit("repair", partial(_move_lanes_unit, [row[1] for row in rows]))
    return Repaired(lanes=total)


def _move_lanes_unit(ids: Sequence[int]) -> int:
    moved = lanes.unblock_next(ids)
    log_event("repair", count=moved, reason="stranded lanes unblocked")
    notify_after_commit("claim")
    return moved
