"""Reads of sources for the console: which records sent something lately, and the newest history of one. Bounded, by index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connectors.models import Record
from connectors.operations.source_events import newest_of_source
from ops_ui.console.lists.keyset import PAGE_SIZE, Cursor, Page
from projection.database.catalogue import Sender
from projection.inputs import lineage
from projection.inspection import lane_reads
from projection.models import Event, LaneHold, WorkFailure, WorkItem
from projection.states import NONTERMINAL

EVENTS_SHOWN: Final = 100
FAILURES_SHOWN: Final = 200
RECORDS_SHOWN: Final = 10
KEYS_SHOWN: Final = 20
"""Projections of one source whose live generations are asked for: one for each route version of its newest events."""
WINDOW: Final = 20_000
"""Events that one page of sources looks through at most: a clustered range, and a look-up for each source in it."""
FIRST_WINDOW: Final = 250
"""Events that are tried first: mostly there are a page's sources among them."""
LOOKED_AT: Final = 20_000
"""Newest events of one id that are looked at for the sources that share it."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Source:
    """One record of a provider, as a namespace knows it."""

    namespace: str
    type: str
    id: str
    account: str = ""

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"


def newest_account(namespace: str, type: str, id: str) -> str:
    """The account that sent the newest event of a source, else that of its record: for an address that names none. At most three
    statements."""
    newest = newest_of_source(type, id, 1, namespace=namespace)
    if newest.ids:
        return str(Event.objects.values_list("account", flat=True).get(id=newest.ids[0]))
    rows = Record.objects.filter(source_id=id, source_type=type, namespace=namespace).order_by("-id")
    return next((row.account for row in rows[:RECORDS_SHOWN] if (row.source_type, row.source_id) == (type, id)), "")


@dataclass(frozen=True, slots=True)
class Which:
    """Which sources a list has: empty members do not filter. `kind` is that of the newest event."""

    source: str = ""
    type: str = ""
    kind: str = ""
    namespace: str = ""
    account: str = ""


def sources(which: Which, cursor: Cursor | None, size: int = PAGE_SIZE) -> Page:
    """A page of sources, each by its newest event, newest first. Four or five statements; goes one way only, as `keyset.windowed`."""
    if which.source:
        return _sources_of_id(which, cursor, size)
    edges = [Event.objects.order_by(order).values_list("id", flat=True).first() for order in ("id", "-id")]
    if edges[0] is None or edges[1] is None:
        return Page([])
    newest = cursor.id - 1 if cursor is not None and cursor.value is None else edges[1]
    floor = newest - WINDOW
    ids: list[int] = []
    for tried in (newest - FIRST_WINDOW, floor):
        ids = _newest_of(which, newest, tried, size + 1)
        if len(ids) > size:
            return Page(_rows(ids[:size]), next=Cursor("after", ids[size - 1]))
    if floor >= edges[0]:
        return Page(_rows(ids), next=Cursor("after", floor + 1), searched_to=floor + 1)
    return Page(_rows(ids))


def _newest_of(which: Which, newest: int, floor: int, limit: int) -> list[int]:
    wanted = {"type": which.type, "kind": which.kind, "namespace": which.namespace, "account": which.account}
    return [row[0] for row in _sql.fetch("read_newest_of_sources", newest=newest, floor=floor, limit=limit, **wanted)]


def _sources_of_id(which: Which, cursor: Cursor | None, size: int) -> Page:
    """Those that share an id, among its newest LOOKED_AT events."""
    ids = [row[0] for row in _sql.fetch("read_sources_of_id", source_id=which.source, limit=LOOKED_AT)]
    rows = Event.objects.defer("payload", "route_snapshot", "last_error").filter(id__in=ids)
    wanted = {"source_type": which.type, "event_kind": which.kind, "namespace": which.namespace, "account": which.account}
    for column, value in wanted.items():
        rows = rows.filter(**{column: value}) if value else rows
    if cursor is not None:
        rows = rows.filter(id__lt=cursor.id)
    found = [row for row in rows.order_by("-id")[: size + 1] if row.source_id == which.source]
    return Page(found[:size], next=Cursor("after", found[size - 1].id) if len(found) > size else None)


def _rows(ids: list[int]) -> list[Event]:
    return list(Event.objects.defer("payload", "route_snapshot", "last_error").filter(id__in=ids).order_by("-id"))


def work_by_event(events: Iterable[Event]) -> dict[int, WorkItem]:
    """Event id → the newest work item that selects it (index ix_work_event). One query."""
    rows = WorkItem.objects.only("id", "work_id", "event_id", "state", "discarded_at")
    return {item.event_id: item for item in rows.filter(event_id__in=[event.id for event in events]).order_by("id")}


def records_by_source(events: Iterable[Event]) -> dict[tuple[str, str, str, str], Record]:
    """(namespace, account, type, id) → its live record (index ix_record_source). One query."""
    rows = Record.objects.defer("properties").filter(source_id__in={event.source_id for event in events}).order_by("-id")
    return {(row.namespace, row.account, row.source_type, row.source_id): row for row in rows[:LOOKED_AT]}


@dataclass(frozen=True, slots=True)
class Generation:
    """A work item of the source: those of its inputs that are shown, in order, and its failed attempts."""

    item: WorkItem
    inputs: tuple[Event, ...]
    is_whole: bool
    """Whether all of its inputs are shown."""
    failures: tuple[WorkFailure, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane in which work of the source runs."""

    key: str
    name: str
    depth: int
    hold: LaneHold | None


@dataclass(frozen=True, slots=True)
class History:
    """The newest events of a source in order, and what became of them, newest first."""

    events: list[Event]
    has_more: bool
    owners: dict[int, WorkItem]
    """Event id → the item that took it."""
    generations: list[Generation]
    lanes: list[Lane]


def history(source: Source) -> History:
    """The newest history of a source. Some dozen statements, whatever it has."""
    newest = newest_of_source(source.type, source.id, EVENTS_SHOWN + 1, namespace=source.namespace, account=source.account)
    rows = Event.objects.defer("payload", "last_error").filter(id__in=newest.ids[:EVENTS_SHOWN])
    events = sorted(rows, key=lambda event: (event.enqueue_ordinal, event.id))
    placed = lineage.owners_of(events)
    items = _items(events, placed)
    has_more = len(newest.ids) > EVENTS_SHOWN or newest.is_cut
    owners = {event_id: items[item_id] for event_id, item_id in placed.items() if item_id in items}
    for item in sorted(items.values(), key=lambda one: -one.id):
        if item.event_id not in placed:
            owners[item.event_id] = item
    return History(
        events,
        has_more,
        owners,
        _generations(list(items.values()), events, owners, has_more=has_more),
        _lanes(list(items.values())),
    )


def _items(events: list[Event], placed: dict[int, int]) -> dict[int, WorkItem]:
    """What took the events, and the live generations of their projections, which may have older inputs alone. Three statements."""
    ids = lineage.selecting_items(events, 2 * EVENTS_SHOWN) | set(placed.values())
    keys = list(dict.fromkeys(event.projection_key for event in reversed(events) if event.projection_key))[:KEYS_SHOWN]
    live = WorkItem.objects.filter(projection_key__in=keys, state__in=sorted(NONTERMINAL)).order_by("-id")
    rows = WorkItem.objects.filter(id__in=ids | set(live.values_list("id", flat=True)[:EVENTS_SHOWN]))
    return {row.id: row for row in rows}


def _generations(items: list[WorkItem], events: list[Event], owners: dict[int, WorkItem], *, has_more: bool) -> list[Generation]:
    ordinary = [item for item in items if item.projection_key and not item.replay_of_work_id]
    lower = {item_id: after for item_id, _, after, _ in lineage.range_bounds(ordinary)} if has_more else {}
    failures: dict[int, list[WorkFailure]] = {}
    newest = WorkFailure.objects.filter(work_item_id__in=[item.id for item in items]).order_by("-id")[:FAILURES_SHOWN]
    for failure in reversed(newest):
        failures.setdefault(failure.work_item_id, []).append(failure)
    oldest = min((event.enqueue_ordinal for event in events), default=0)
    made = []
    for item in sorted(items, key=lambda one: (one.lane_ordinal, one.id), reverse=True):
        inputs = tuple(event for event in events if owners.get(event.id) is item)
        is_whole = lower.get(item.id, oldest) >= oldest  # an event of this source is shown that is none of its inputs
        made.append(Generation(item, inputs, is_whole, tuple(failures.get(item.id, ()))))
    return made


def _lanes(items: list[WorkItem]) -> list[Lane]:
    """Three queries."""
    first = {item.lane_key: item for item in sorted(items, key=lambda one: -one.id) if item.lane_key}
    names = lane_reads.lane_names(list(first.values()))
    depths = lane_reads.depth_by_lane(list(first))
    holds = lane_reads.holds_of(list(first))
    return [Lane(key, names[item.id], depths.get(key, 0), holds.get(key)) for key, item in first.items()]


def records(source: Source) -> list[Record]:
    """The live records of the source, one for each pack and kind. One query (index ix_record_source)."""
    rows = Record.objects.filter(source_id=source.id, source_type=source.type, account=source.account)
    rows = rows.filter(namespace=source.namespace).order_by("id")
    return [
        row
        for row in rows[:RECORDS_SHOWN]
        if (row.account, row.source_type, row.source_id) == (source.account, source.type, source.id)
    ]
