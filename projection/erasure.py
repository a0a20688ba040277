"""Erasure of facts: what an event and its work say of a person goes, ids, keys, order and hashes stay (protocol, invariant 1).

Joins its caller's transaction, which holds the namespace lock: nothing is admitted, replayed or repaired meanwhile. The readable source
id and lanes of a tombstone become `erased:<source key>`; `ErasureId` names the audit entry that says when, by whom and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from projection.coverage import uncovered_events
from projection.identity import source_key
from projection.lineage import items_of, replay_lineage
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.sending import by_id, execute, fetch
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


def tombstone_id(source_type: str, source_id: str) -> str:
    """What the readable id of an erased source becomes."""
    return f"erased:{source_key(source_type, source_id)}"


def work_in_the_way(event_ids: Sequence[int]) -> list[Refused]:
    """Why the events cannot be erased now: work that still needs them, at most some. Three or four reads; locks nothing."""
    if not event_ids:
        return []
    found = fetch("read_open_work", event_ids=tuple(event_ids), limit=REFUSALS_LISTED)
    facts = list(Event.objects.filter(id__in=event_ids, replay_of_event_id=None).values_list("id", flat=True))
    missing = uncovered_events(Event.objects.read_known_events(facts)) if facts and not found else []
    return [_open(work_id, state) for work_id, state in found] + [
        Refused(str(event), "missing_task", f"the task of event {event} is missing; run `repair`, then erase again")
        for event in missing[:REFUSALS_LISTED]
    ]


def _open(work_id: str, state: str) -> Refused:
    if state == State.DEAD:
        return Refused(work_id, "dead", f"{work_id} is dead; replay it first, or discard it (`--discard` discards all of them)")
    return Refused(work_id, "nonterminal", f"{work_id} is {state}; let it end or cancel it, then erase again")


def erase_facts(event_ids: Sequence[int], erasure_id: int) -> ErasedFacts:
    """Make tombstones of the events, and blank what their work says. About a dozen statements for some hundreds of events."""
    events = list(Event.objects.defer("payload").filter(id__in=event_ids))
    took = items_of(events, MOST_ITEMS)
    took |= replay_lineage(WorkItem.objects.filter(id__in=took))
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


def erased_work(item_ids: Sequence[int]) -> set[int]:
    """Those of the items that cannot run again: their event, or one of their inputs, is a tombstone. One read; none for none."""
    return {row[0] for row in fetch("read_erased_work", ids=tuple(item_ids))} if item_ids else set()


def erased_refusal(work_id: str) -> Refused:
    """Why a dead item with erased inputs is not replayed."""
    return Refused(work_id, "erased", f"the events of {work_id} were erased; there is nothing left to run it with")
