"""Reads for the comparison of two generations: which ones there are of a source, and the lines of their inputs, masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models.functions import Length

from ops_ui.console.generations import range_reads
from ops_ui.console.payloads import reads as payload_reads
from ops_ui.console.payloads.diff import lines_of
from projection.models import Event, WorkItem

COMPARED_AT_MOST: Final = 256 * 1024
"""Length of a payload that is compared: all of it is read, masked and laid out."""
INPUTS: Final = 10
"""Inputs of a range that are compared at once, the newest."""
CHOICES: Final = 20
LAST, FIRST, ALL = "last", "first", "all"


@dataclass(frozen=True, slots=True)
class Side:
    """One generation of a comparison: the inputs that are compared, their lines, how many inputs are left out, and what is masked."""

    item: WorkItem
    events: list[Event]
    lines: list[str]
    left_out: int
    is_masked: bool


def neighbours(item: WorkItem) -> list[WorkItem]:
    """The newest other generations of the projection of `item` (index ix_work_coverage). One query."""
    if item.projection_key is None:
        return []
    rows = WorkItem.objects.defer("last_error", "discard_reason").filter(projection_key=item.projection_key, replay_of_work_id=None)
    return list(rows.exclude(id=item.id).order_by("-lane_ordinal", "-event_id")[:CHOICES])


def is_same_source(one: WorkItem, other: WorkItem) -> bool:
    """Whether both are work of one source record of one namespace; not where an event of them is not kept any more. One query."""
    ids = {one.event_id, other.event_id}
    found = list(Event.objects.filter(id__in=ids).values_list("namespace", "source_key"))
    return len(found) == len(ids) and len(set(found)) == 1


def side(item: WorkItem, which: str) -> Side:
    """The inputs of `item` as lines: the LAST one, the FIRST, or ALL of them (at most INPUTS). Some four queries for each input."""
    found = range_reads.inputs(item)
    chosen = {LAST: found.inputs[-1:], FIRST: found.inputs[:1]}.get(which, found.inputs[-INPUTS:])
    rows = Event.objects.defer("payload", "last_error").annotate(length=Length("payload"))
    by_id = rows.in_bulk([event.id for event in chosen])
    lines: list[str] = []
    is_masked = False
    for event in chosen:
        row = by_id.get(event.id)
        if which == ALL:
            lines.append(f"— {event.event_kind} —")
        if row is None or row.erasure_id is not None:
            lines.append("(erased, or no longer retained)")
        elif row.length > COMPARED_AT_MOST:
            hash_of = "" if payload_reads.of_event(row).masks else f"; SHA-256 {row.payload_sha256}"
            lines.append(f"({row.length:,} characters: too long to compare{hash_of})")
        else:
            text = payload_reads.of_event(row).masked()
            is_masked = is_masked or text.is_masked
            lines += lines_of(text)
    left_out = found.count - len(chosen) if which == ALL else 0
    return Side(item, chosen, lines, left_out, is_masked)
