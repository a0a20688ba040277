"""Erasure of facts: what an event and its work say of a person goes, ids, keys, order and hashes stay (docs/protocol.md#erasure).

Joins its caller's transaction, which holds the namespace lock: nothing is admitted, replayed or repaired meanwhile. The readable source
id and lanes of a tombstone become `erased:<source key>`; `ErasureId` names the audit entry that says when, by whom and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from projection.admission.coverage import uncovered_events
from projection.database.catalogue import NO_ID, by_id, execute, fetch
from projection.identity import source_key
from projection.inputs.lineage import items_of, replay_lineage
from projection.inputs.ranges import BrokenRange, mixed_members, read_roots
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.rows import WorkRow
from projection.states import State

ERASED_TEXT: Final = "erased"
"""Stands for an error text, which may quote what is erased."""
REFUSALS_LISTED: Final = 20
MOST_ITEMS: Final = 100_000
"""Work items of one unit's events; each event has a few."""


@dataclass(frozen=True, slots=True)
class ErasedFacts:
    """How many rows became tombstones, or lost their error text."""

    events: int = 0
    work_items: int = 0

    def __add__(self, other: ErasedFacts) -> ErasedFacts:
        return ErasedFacts(self.events + other.events, self.work_items + other.work_items)


def tombstone_id(account: str, source_type: str, source_id: str) -> str:
    """What the readable id of an erased source becomes."""
    return f"erased:{source_key(account, source_type, source_id)}"


def work_in_the_way(event_ids: Sequence[int]) -> list[Refused]:
    """Why the events cannot be erased now: work that still needs them, at most some. About six reads; locks nothing."""
    if not event_ids:
        return []
    ids = tuple(sorted(_lineages(event_ids))) or NO_ID
    found = fetch("read_open_work", event_ids=tuple(event_ids), ids=ids, limit=REFUSALS_LISTED)
    facts = list(Event.objects.filter(id__in=event_ids, replay_of_event_id=None).values_list("id", flat=True))
    missing = uncovered_events(Event.objects.read_known_events(facts)) if facts and not found else []
    return [_open(work_id, state) for work_id, state in found] + [
        Refused(str(event), "missing_task", f"the work of event {event} is missing; run `repair`, then erase again")
        for event in missing[:REFUSALS_LISTED]
    ]


def _lineages(event_ids: Sequence[int]) -> set[int]:
    """Ids of the work items that took the events, with what they replay and what replays them."""
    took = items_of(list(Event.objects.defer("payload").filter(id__in=event_ids)), MOST_ITEMS)
    return took | replay_lineage(WorkItem.objects.filter(id__in=took))


def _open(work_id: str, state: str) -> Refused:
    if state == State.DEAD:
        return Refused(work_id, "dead", f"{work_id} is dead; replay it first, or discard it (`--discard` discards all of them)")
    return Refused(work_id, "nonterminal", f"{work_id} is {state}; let it finish or cancel it, then erase again")


def erase_facts(event_ids: Sequence[int], erasure_id: int) -> ErasedFacts:
    """Make tombstones of the events, and blank what their work says. About a dozen statements for some hundreds of events."""
    if not event_ids:
        return ErasedFacts()
    took = _lineages(event_ids)
    work_items = 0
    if took:
        ids = tuple(sorted(took))
        work_items = execute("blank_errors", ids=ids, text=ERASED_TEXT)
        execute("blank_failures", ids=ids, text=ERASED_TEXT)
    lanes = fetch("read_selecting_lanes", event_ids=tuple(event_ids))
    if lanes:
        parts, values = by_id(("SourceLane",), lanes)
        execute("blank_lanes", [*values, tuple(row[0] for row in lanes)], **parts)
    return ErasedFacts(execute("erase_events", ids=tuple(event_ids), erasure_id=erasure_id), work_items)


def erased_work(rows: Iterable[WorkRow]) -> set[int]:
    """Ids of those of the items that cannot run again: their event, or one of the inputs of their lineage's root, is a tombstone.

    One read, and one for each step of the longest lineage; three more for projections with rows from before ordinals. None for none.
    """
    roots = _roots(list(rows))
    if not roots:
        return set()
    projections = {root: key for root, key in roots.values() if key is not None}
    found = fetch("read_erased_work", ids=tuple({*roots, *(root for root, _ in roots.values())}))
    mixed = {item: projections[item] for item, _, _, is_mixed in found if is_mixed and item in projections}
    erased = {item for item, selected, in_range, _ in found if selected or (in_range and item not in mixed)}
    erased |= _erased_mixed(mixed)
    return {item for item, (root, _) in roots.items() if item in erased or root in erased}


def _roots(rows: Sequence[WorkRow]) -> dict[int, tuple[int, str | None]]:
    """Item id → (id, projection key) of the ordinary item that it goes back to; itself where that is not retained: it cannot run anyway."""
    replayed = {row.replay_of_work_id for row in rows if row.replay_of_work_id is not None}
    try:
        found = read_roots(replayed)
    except BrokenRange:
        found = {}
        for work_id in replayed:
            with suppress(BrokenRange):
                found |= read_roots([work_id])
    roots = {row.id: found.get(row.replay_of_work_id or "") for row in rows}
    alone = {row.id: (row.id, None if row.is_replay else row.projection_key) for row in rows}
    return {item: (root.id, root.projection_key) if root else alone[item] for item, root in roots.items()}


def _erased_mixed(keys: Mapping[int, str]) -> set[int]:
    """Those of these ordinary generations that represent a tombstone, by membership."""
    members = mixed_members(keys)
    ids = tuple({place.event_id for places in members.values() for place in places})
    tombstones = {row[0] for row in fetch("read_tombstones_of", ids=ids)} if ids else set()
    return {item for item, places in members.items() if any(place.event_id in tombstones for place in places)}


def erased_refusal(work_id: str) -> Refused:
    """Why a dead item with erased inputs is neither replayed nor restored."""
    return Refused(work_id, "erased", f"the events of {work_id} were erased, so it cannot run")
