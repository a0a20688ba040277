"""Lanes for people: which have open work, what is in front, how deep they are and who holds them; for commands and pages alike.

Reads only; `completion.lanes` changes them. Every read uses an index of work items; a page of lanes costs the same whatever waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from projection.database.catalogue import fetch, fetch_each
from projection.database.clock import from_db
from projection.models import Event, LaneHold, WorkItem
from projection.states import NONTERMINAL, TERMINAL, State

FRONT_STATES: Final = (State.PROCESSING, State.RETRY, State.PENDING)
"""States of an item at the front of its lane: a lane with open work has one of these (docs/protocol.md#blocked). The first two hold it."""
HELD: Final = "held"
QUEUED: Final = Q(state=State.BLOCKED, projection_key__isnull=False, projection_active_key__isnull=True)
"""Successors that wait for their own generation, not for their lane."""

Position = tuple[Literal["after", "before"], int]
"""Where a page lies: behind, or before, the lane with this `id`."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane with open work or a hold. `head` is its holder, else its first item that is not blocked.

    `id`: of its head, among held lanes of its hold; pages are in its order. `depth`: items that have not ended.
    """

    id: int
    key: str
    namespace: str
    name: str
    head: WorkItem | None
    depth: int
    hold: LaneHold | None

    @property
    def account(self) -> str:
        """Whose records its work is about; of a lane without work nobody knows."""
        return str(self.head.account) if self.head is not None else ""


@dataclass(frozen=True, slots=True)
class LanePage:
    """The lanes of a page, and whether there are others on its sides."""

    lanes: Sequence[Lane] = ()
    has_previous: bool = False
    has_next: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits or runs in a lane but queued successors: how much, how much of it is blocked, and since when the oldest of it is there."""

    depth: int = 0
    blocked: int = 0
    oldest: datetime | None = None


def lane_page(chosen: str = "", position: Position | None = None, *, size: int, blocked: bool = False) -> LanePage:
    """Each lane once, the one whose head is oldest first. One keyset query for each state and three more; five for held lanes.

    `chosen`: a state of the head, or `held`: lanes on hold, the oldest hold first. `blocked`: only those in which something is blocked.
    """
    backwards = position is not None and position[0] == "before"
    found = [row for rows in _listed(chosen, blocked) for row in _beyond(rows, position)[: size + 1]]
    found = sorted(found, key=lambda row: row.id, reverse=backwards)
    rows = sorted(found[:size], key=lambda row: row.id)
    if not rows:
        return LanePage()
    more = len(found) > size
    lanes = _lanes_on_hold(rows) if chosen == HELD else _lanes_of_heads(rows)
    return LanePage(lanes, *((more, True) if backwards else (position is not None, more)))


def _listed(chosen: str, blocked: bool) -> list[QuerySet[Any]]:
    """What a page is made of: holds, or heads of lanes of each state."""
    all_holds: QuerySet[Any] = LaneHold.objects.all()
    listed = [all_holds] if chosen == HELD else [_heads(state) for state in FRONT_STATES if chosen in ("", state)]
    if not blocked:
        return listed
    behind = WorkItem.objects.filter(lane_key=OuterRef("lane_key"), state=State.BLOCKED).exclude(QUEUED)
    return [rows.filter(Exists(behind)) for rows in listed]


def _heads(state: State) -> QuerySet[WorkItem]:
    """Items of `state` with no other front item of their lane before them (a holder is before every other one)."""
    front = WorkItem.objects.filter(lane_key=OuterRef("lane_key"), state__in=FRONT_STATES)
    if state is State.PENDING:
        earlier = Q(lane_holder_key__isnull=False) | Q(lane_position__lt=OuterRef("lane_position"))
        front = front.filter(earlier | Q(lane_position=F("lane_position"), pk__lt=OuterRef("id")))
    else:
        front = front.filter(lane_holder_key__isnull=False).exclude(pk=OuterRef("id"))
    return WorkItem.objects.filter(state=state, terminal_at=None, lane_key__isnull=False).filter(~Exists(front))


def _beyond(rows: QuerySet[Any], position: Position | None) -> QuerySet[Any]:
    if position is None:
        return rows.order_by("id")
    side, row_id = position
    return rows.filter(id__gt=row_id).order_by("id") if side == "after" else rows.filter(id__lt=row_id).order_by("-id")


def _lanes_of_heads(items: Sequence[WorkItem]) -> list[Lane]:
    """Three queries."""
    keys = [str(item.lane_key) for item in items]
    depths, names, holds = depth_by_lane(keys), lane_names(items), holds_of(keys)
    return [
        Lane(item.id, key, item.namespace, names[item.id], item, depths.get(key, 0), holds.get(key))
        for key, item in zip(keys, items, strict=True)
    ]


def _lanes_on_hold(holds: Sequence[LaneHold]) -> list[Lane]:
    """Three queries."""
    keys = [hold.lane_key for hold in holds]
    depths, heads = depth_by_lane(keys), heads_of(keys)
    return [
        Lane(hold.id, hold.lane_key, hold.namespace, hold.lane, heads.get(hold.lane_key), depths.get(hold.lane_key, 0), hold)
        for hold in holds
    ]


def holds_of(keys: Sequence[str]) -> dict[str, LaneHold]:
    """Lane key → its hold, where it is on hold. One query."""
    return {hold.lane_key: hold for hold in LaneHold.objects.filter(lane_key__in=keys)}


def heads_of(keys: Sequence[str]) -> dict[str, WorkItem]:
    """Lane key → the item in front, where there is one. Two queries, whatever waits in the lanes."""
    asked = [(key, state.value) for state in reversed(FRONT_STATES) for key in keys]
    items = WorkItem.objects.in_bulk([row[0] for row in fetch_each("read_front_item", asked)])
    return {str(item.lane_key): item for state in reversed(FRONT_STATES) for item in items.values() if item.state == state}


def waiting(keys: Sequence[str]) -> dict[str, Waiting]:
    """Lane key → what waits there, where anything does. One query in proportion to it."""
    rows = fetch("read_waiting", keys=tuple(keys)) if keys else ()
    return {key: Waiting(depth, int(blocked), from_db(oldest)) for key, depth, blocked, oldest in rows}


def front(lane_key: str, most: int, *, with_queued: bool = True) -> list[WorkItem]:
    """The first open items of a lane, in its order. One query for each open state (index ix_work_lane), whatever its depth."""
    rows = WorkItem.objects.filter(lane_key=lane_key)
    rows = rows if with_queued else rows.exclude(QUEUED)
    found = [item for state in sorted(NONTERMINAL) for item in rows.filter(state=state).order_by("lane_position", "id")[:most]]
    return sorted(found, key=lambda item: (item.lane_position, item.id))[:most]


def ended_last(lane_key: str, most: int) -> list[WorkItem]:
    """The ended items of a lane with the highest positions. One query for each terminal state (index ix_work_lane)."""
    rows = WorkItem.objects.filter(lane_key=lane_key)
    found = [item for state in sorted(TERMINAL) for item in rows.filter(state=state).order_by("-lane_position", "-id")[:most]]
    return sorted(found, key=lambda item: (item.lane_position, item.id), reverse=True)[:most]


def depth_by_lane(keys: Sequence[str]) -> dict[str, int]:
    """Open items of each lane (index ix_work_lane). One query."""
    rows = WorkItem.objects.filter(lane_key__in=keys, state__in=NONTERMINAL).order_by().values("lane_key")
    return {row["lane_key"]: row["n"] for row in rows.annotate(n=Count("id"))}


def lane_names(items: Sequence[WorkItem]) -> dict[int, str]:
    """Item id → what its lane is called: the target mutation lane of its selected event, else its source lane. One query."""
    events = Event.objects.filter(id__in=[item.event_id for item in items]).exclude(target_mutation_lane="")
    targets: dict[int, str] = dict(events.values_list("id", "target_mutation_lane"))
    return {item.id: targets.get(item.event_id) or str(item.source_lane or item.lane_key) for item in items}
