"""Which work items took an event, and which events a work item takes: bounded reads for people (`trace`, `work show`, console).

What a flow is given comes from the claim's own read (`ranges`); this reads ids and counts only. Rows from before ordinals existed are
placed by ingress time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from projection.database.catalogue import fetch, fetch_each
from projection.database.clock import to_db
from projection.inputs.replay_chains import LONGEST_LINEAGE
from projection.models import Event, WorkItem

PIECES_A_STATEMENT: Final = 100
"""Index look-ups that are sent as one UNION ALL."""
BEFORE_ORDINALS: Final = -1
"""Lower bound of a projection's first range: takes in the rows from before ordinals existed."""


@dataclass(frozen=True, slots=True)
class InputSpan:
    """The inputs of a generation: how many, and the ordinals of the first and last; `count` 1 for per-event items."""

    count: int
    first_ordinal: int
    last_ordinal: int


def items_of(events: Sequence[Event], limit: int) -> set[int]:
    """Ids of the work items that took the events: those that select one, and the ordinary generation whose range holds it.

    One statement for each 100 events, and one more for those without ordinals.
    """
    return selecting_items(events, limit) | set(owners_of(events).values())


def selecting_items(events: Sequence[Event], limit: int) -> set[int]:
    """Ids of the work items that select one of the events: per-event items, generations, replays. One statement."""
    if not events:
        return set()
    return {row[0] for row in fetch("read_selecting_items", event_ids=tuple(event.id for event in events), limit=limit)}


def owners_of(events: Sequence[Event]) -> dict[int, int]:
    """Event id → id of the ordinary generation whose range holds it; events of no projection, and those whose task is missing, are
    left out. One statement for each 100 events, and one more for those without ordinals.
    """
    projected = [event for event in events if event.projection_key and event.replay_of_event_id is None and event.route_id]
    with_ordinal = [event for event in projected if event.enqueue_ordinal]
    placed = dict(_each("read_generation_at", [(e.id, e.projection_key, e.enqueue_ordinal) for e in with_ordinal]))
    by_time = [(*_place(event),) for event in projected if event.id not in placed]
    placed.update(_each("read_generation_by_time", by_time))
    return placed


def events_of_receipts(receipt_ids: Iterable[int], limit: int) -> set[int]:
    """Ids of the newest events of each receipt, at most `limit` of each. One statement for each 100 receipts."""
    return {row[0] for row in _each("read_receipt_event_ids", [(one, limit) for one in receipt_ids])}


def _place(event: Event) -> tuple[Any, ...]:
    return (event.id, event.projection_key, to_db(event.created_date), event.delivery_sequence, event.id)


def _each(name: str, values: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Send a look-up of one row for many values, as one UNION ALL for each PIECES_A_STATEMENT of them."""
    for start in range(0, len(values), PIECES_A_STATEMENT):
        yield from fetch_each(name, values[start : start + PIECES_A_STATEMENT])


def replay_lineage(items: Iterable[WorkItem]) -> set[int]:
    """Ids of what the items replay and of what replays them, through all levels. Two statements a level."""
    found: set[int] = set()
    below = {item.work_id for item in items}
    above = {item.replay_of_work_id for item in items if item.replay_of_work_id}
    for _ in range(LONGEST_LINEAGE):
        if not below and not above:
            break
        replays = fetch("read_replays", work_ids=tuple(below)) if below else []
        ancestors = WorkItem.objects.read_lineage(above) if above else []
        below = {work_id for work_id, id in replays if id not in found}
        above = {of for _, id, of, *_ in ancestors if of and id not in found}
        found |= {id for _, id in replays} | {row[1] for row in ancestors}
    return found


def root_of(item: WorkItem) -> WorkItem | None:
    """The ordinary item that `item` is a replay of, through all levels; itself when it is ordinary; None when it is not retained, or
    the lineage a circle. One query for each level.
    """
    return roots_of([item]).get(item.id)


def roots_of(items: Iterable[WorkItem]) -> dict[int, WorkItem]:
    """Item id → its root (`root_of`); items without one are left out. One query for each level, however many items there are."""
    roots: dict[int, WorkItem] = {}
    current = {item.id: item for item in items}
    met = {id: {id} for id in current}
    for _ in range(LONGEST_LINEAGE):
        roots |= {id: row for id, row in current.items() if row.replay_of_work_id is None}
        above = {id: row.replay_of_work_id for id, row in current.items() if row.replay_of_work_id is not None}
        if not above:
            break
        rows = {row.work_id: row for row in WorkItem.objects.filter(work_id__in=set(above.values()))}
        current = {id: rows[of] for id, of in above.items() if of in rows and rows[of].id not in met[id]}
        for id, row in current.items():
            met[id].add(row.id)
    return roots


def event_ids_of(items: Sequence[WorkItem], limit: int) -> set[int]:
    """Ids of the events that the items take: the newest of each range, at most about `limit` in all. One statement for each 100 ranges
    that are read, and one for each level of replay."""
    found = {item.event_id for item in items}
    roots = list(roots_of(item for item in items if item.projection_key).values())
    newest_first = sorted(range_bounds(roots), key=lambda bounds: bounds[3], reverse=True)
    for (event_id,) in _each("read_range_event_ids", [(*bounds[1:], limit) for bounds in newest_first]):
        if len(found) >= limit:
            break
        found.add(event_id)
    return found


def input_span(item: WorkItem) -> InputSpan:
    """How many inputs a generation has, without reading them. At most three statements, and one for each level of replay.

    A replay takes its root's inputs with its own event in the place of the root's selected one.
    """
    root = root_of(item) if item.projection_key else None
    for _, key, after, through in range_bounds([root] if root else []):
        ((count, first, last),) = fetch("read_range_size", key=key, after=after, through=through)
        if count:
            return InputSpan(count, first, last)
    return InputSpan(1, item.lane_ordinal, item.lane_ordinal)


def range_bounds(roots: Sequence[WorkItem]) -> list[tuple[int, str, int, int]]:
    """(id, projection key, after ordinal, through ordinal) of the ordinary generations among `roots`. One statement."""
    if not roots:
        return []
    rows = fetch("read_range_bounds", ids=tuple(root.id for root in roots))
    return [(id, key, BEFORE_ORDINALS if after is None else after, through) for id, key, after, through in rows]
