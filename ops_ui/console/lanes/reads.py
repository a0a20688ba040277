"""Reads of lanes for the console: the lanes with live work, their heads and depth. Every read uses an index of work items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from ops_ui.console.lists.keyset import OLDEST_FIRST, PAGE_SIZE, Cursor, Page, page
from projection.models import Event, LaneHold, WorkItem
from projection.states import NONTERMINAL, TERMINAL, State

FRONT_STATES: Final = (State.PENDING, State.PROCESSING, State.RETRY)
"""States of an item at the front of its lane: a lane with live work has one of these (docs/protocol.md#blocked)."""
_LIVE: Final = [state.value for state in NONTERMINAL]


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane with live work or a hold. `head` is its holder, else its first item that is not blocked."""

    key: str
    name: str
    head: WorkItem | None
    depth: int
    hold: LaneHold | None


def heads(states: tuple[State, ...], cursor: Cursor | None, size: int = PAGE_SIZE) -> Page:
    """Heads of lanes in one of `states`, oldest first; each lane once. One keyset query a state."""
    pages = [page(_heads(state), OLDEST_FIRST, cursor, size) for state in states]
    backwards = cursor is not None and cursor.side == "before"
    merged = sorted((row for one in pages for row in one.rows), key=lambda row: row.id)
    rows = merged[-size:] if backwards else merged[:size]
    if not rows:
        return Page([])
    cut = len(merged) > size
    has_previous = any(one.previous for one in pages) or (backwards and cut)
    has_next = any(one.next for one in pages) or (not backwards and cut)
    return Page(
        rows,
        previous=Cursor("before", rows[0].id) if has_previous else None,
        next=Cursor("after", rows[-1].id) if has_next else None,
    )


def _heads(state: State) -> QuerySet[WorkItem]:
    """Items of `state` with no other front item of their lane before them (a holder is before every other one)."""
    front = WorkItem.objects.filter(lane_key=OuterRef("lane_key"), state__in=FRONT_STATES)
    if state is State.PENDING:
        earlier = Q(lane_holder_key__isnull=False) | Q(lane_position__lt=OuterRef("lane_position"))
        front = front.filter(earlier | Q(lane_position=F("lane_position"), pk__lt=OuterRef("id")))
    else:
        front = front.filter(lane_holder_key__isnull=False).exclude(pk=OuterRef("id"))
    return WorkItem.objects.filter(state=state, terminal_at=None, lane_key__isnull=False).filter(~Exists(front))


def lanes(items: list[WorkItem]) -> list[Lane]:
    """The lanes of these heads, with depth and hold. Three queries."""
    keys = [item.lane_key for item in items if item.lane_key]
    depths = depth_by_lane(keys)
    names = lane_names(items)
    holds = {hold.lane_key: hold for hold in LaneHold.objects.filter(lane_key__in=keys)}
    return [
        Lane(item.lane_key, names[item.id], item, depths.get(item.lane_key, 0), holds.get(item.lane_key))
        for item in items
        if item.lane_key
    ]


def held(cursor: Cursor | None, size: int = PAGE_SIZE) -> Page:
    """The held lanes, oldest hold first: a page whose rows are lanes. Three queries."""
    found = page(LaneHold.objects.all(), OLDEST_FIRST, cursor, size)
    keys = [hold.lane_key for hold in found.rows]
    depths = depth_by_lane(keys)
    rows = [Lane(hold.lane_key, hold.lane, None, depths.get(hold.lane_key, 0), hold) for hold in found.rows]
    return Page(rows, found.previous, found.next)


def front(lane_key: str, most: int) -> list[WorkItem]:
    """The first live items of a lane, in its order. One query for each live state (index ix_work_lane), whatever its depth."""
    found = [item for state in sorted(NONTERMINAL) for item in _of(lane_key, state).order_by("lane_position", "id")[:most]]
    return sorted(found, key=lambda item: (item.lane_position, item.id))[:most]


def ended_last(lane_key: str, most: int) -> list[WorkItem]:
    """The ended items of a lane with the highest positions. One query for each terminal state (index ix_work_lane)."""
    found = [item for state in sorted(TERMINAL) for item in _of(lane_key, state).order_by("-lane_position", "-id")[:most]]
    return sorted(found, key=lambda item: (item.lane_position, item.id), reverse=True)[:most]


def _of(lane_key: str, state: State) -> QuerySet[WorkItem]:
    return WorkItem.objects.filter(lane_key=lane_key, state=state)


def depth_by_lane(keys: list[str]) -> dict[str, int]:
    """Live items of each lane (index ix_work_lane). One query."""
    rows = WorkItem.objects.filter(lane_key__in=keys, state__in=_LIVE).order_by().values("lane_key")
    return {row["lane_key"]: row["n"] for row in rows.annotate(n=Count("id"))}


def lane_names(items: list[WorkItem]) -> dict[int, str]:
    """Item id → what its lane is called: the target mutation lane of its selected event, else its source lane. One query."""
    events = Event.objects.filter(id__in=[item.event_id for item in items]).exclude(target_mutation_lane="")
    targets: dict[int, str] = dict(events.values_list("id", "target_mutation_lane"))
    return {item.id: targets.get(item.event_id) or str(item.source_lane or item.lane_key) for item in items}
