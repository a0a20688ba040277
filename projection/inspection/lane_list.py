"""Lanes for people: which have live work, how deep they are, who holds them. Reads only; `lanes` is the room that changes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from projection.database.catalogue import fetch
from projection.database.clock import from_db
from projection.models import Event, LaneHold, WorkItem


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator's hold of a lane."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class LaneSummary:
    """`depth` counts live items, `blocked` those of them that wait for one ahead; `running` is the WorkId that holds the lane."""

    lane_key: str
    namespace: str
    lane: str
    depth: int
    blocked: int
    oldest: datetime | None
    running: str | None
    running_state: str | None
    hold: Hold | None


def lanes(*, limit: int, blocked: bool = False, held: bool = False, keys: Sequence[str] | None = None) -> list[LaneSummary]:
    """At most `limit` lanes, the one with the oldest live item first; held ones without live work come last. Five queries.

    `blocked`: only lanes in which something is blocked; `held`: only lanes on hold; `keys`: only these.
    """
    holds = _holds(keys, limit if held else None)
    wanted = sorted(holds) if held else keys
    rows = _live(wanted, blocked=blocked, limit=limit)
    names = _names([row[4] for row in rows])
    running = _running([row[0] for row in rows])
    found = []
    for key, depth, waiting, oldest, newest in rows:
        namespace, lane = names.get(newest, ("", ""))
        work_id, state = running.get(key, (None, None))
        found.append(LaneSummary(key, namespace, lane, depth, int(waiting), from_db(oldest), work_id, state, _hold(holds.get(key))))
    if blocked or wanted is None:
        return found
    live = {lane.lane_key for lane in found}
    idle = [hold for key, hold in sorted(holds.items()) if key not in live]
    return [*found, *(LaneSummary(h.lane_key, h.namespace, h.lane, 0, 0, None, None, None, _hold(h)) for h in idle)][:limit]


def queue(lane_key: str, limit: int) -> list[WorkItem]:
    """The first `limit` live items of a lane in order. Two queries."""
    ids = [row[0] for row in fetch("read_lane_queue", lane_key=lane_key, limit=limit)]
    return list(WorkItem.objects.filter(id__in=ids).order_by("lane_position", "id"))


def lane_name(item: WorkItem) -> str:
    """Readable name of the lane that an item runs in: its target mutation lane where it has one. One query."""
    _, lane = _names([item.id]).get(item.id, ("", str(item.source_lane)))
    return lane


def _live(keys: Sequence[str] | None, *, blocked: bool, limit: int) -> list[tuple[str, int, int, datetime, int]]:
    if keys is not None and not keys:
        return []
    among = "" if keys is None else "AND w.LaneKey IN %(keys)s"
    having = "HAVING SUM(CASE WHEN w.State = 'blocked' THEN 1 ELSE 0 END) > 0" if blocked else ""
    return fetch("read_live_lanes", among=among, having=having, limit=limit, **({} if keys is None else {"keys": tuple(keys)}))


def _holds(keys: Sequence[str] | None, limit: int | None) -> dict[str, LaneHold]:
    """Holds are an operator's few; a list of lanes needs them all to mark its own."""
    rows = LaneHold.objects.order_by("held_at", "id")
    if keys is not None:
        rows = rows.filter(lane_key__in=keys)
    return {hold.lane_key: hold for hold in rows[:limit]}


def _hold(row: LaneHold | None) -> Hold | None:
    return Hold(row.held_by, row.held_at, row.reason) if row else None


def _names(item_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Work item id → (namespace, readable name of its lane)."""
    items = list(WorkItem.objects.filter(id__in=list(item_ids)).values_list("id", "namespace", "source_lane", "event_id"))
    events = Event.objects.filter(id__in=[item[3] for item in items]).exclude(target_mutation_lane="")
    targets = dict(events.values_list("id", "target_mutation_lane"))
    return {id: (namespace, targets.get(event_id) or lane) for id, namespace, lane, event_id in items}


def _running(lane_keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Lane key → (WorkId, state) of its holder."""
    rows = WorkItem.objects.filter(lane_holder_key__in=lane_keys).values_list("lane_holder_key", "work_id", "state")
    return {str(key): (work_id, state) for key, work_id, state in rows}
