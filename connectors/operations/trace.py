"""Trace: paste an id, see what became of it: receipts → events → work items → failures.

The text may be a delivery id, a source id (or `type:id`), a lane, a WorkId, or the number of a receipt or event (`WAYS`). Only
indexed look-ups, at most LIMIT rows of each kind, and no payload. A database may compare texts blindly (trailing spaces, case):
equality is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

from connectors.models import Receipt
from connectors.operations.source_events import newest_of_source
from connectors.operations.traced import TracedEvent, TracedFailure, TracedItem, TracedReceipt
from projection.database.catalogue import Sender
from projection.inputs import lineage
from projection.models import Event, WorkFailure, WorkItem
from projection.safe_text import storable

R = TypeVar("R", bound=Model)

LIMIT: Final = 500
"""Rows of each kind that one answer holds; more set `truncated`."""
LONGEST_TEXT: Final = 700
"""Characters of the longest searchable text (a lane); a longer one names nothing."""
COLONS: Final = 8
"""`type:id` is tried at each of the first colons: types and ids may contain some themselves."""
WAYS: Final = {
    "receipt_delivery": "delivery id of a receipt",
    "event_delivery": "delivery id of an event",
    "receipt": "number of a receipt",
    "event": "number of an event",
    "source": "source (type:id)",
    "source_id": "source id",
    "work_id": "work id",
    "lane": "source lane",
}
"""In which ways a text may name something, in the order in which they are tried."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Match:
    """One way in which the text names something: how many rows of its kind (the newest, at most the limit)."""

    way: str
    """A key of WAYS."""
    kind: str
    """`receipt`, `event` or `work_item`."""
    rows: int
    more: bool

    @property
    def title(self) -> str:
        return WAYS[self.way]


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that an id leads to, in the order in which it happened."""

    receipts: list[TracedReceipt]
    events: list[TracedEvent]
    work_items: list[TracedItem]
    failures: list[TracedFailure]
    truncated: bool
    """Some kind had more rows than are shown, or could not be looked through to the end; the newest are shown."""
    matches: list[Match]

    @property
    def found(self) -> bool:
        return bool(self.receipts or self.events or self.work_items)


@dataclass(slots=True)
class _Found:
    limit: int
    receipts: dict[int, Receipt] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    items: dict[int, WorkItem] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)
    """Event id → id of the ordinary generation that has it among its inputs."""
    matches: list[Match] = field(default_factory=list)
    truncated: bool = False

    def work_id(self, event: Event) -> str | None:
        """The WorkId of what took the event first, if it is shown."""
        owner = self.items.get(self.owners.get(event.id, 0))
        if owner is None and event.id not in self.owners:
            owner = min((item for item in self.items.values() if item.event_id == event.id), key=lambda item: item.id, default=None)
        return owner.work_id if owner else None


def trace(text: str, limit: int = LIMIT, *, only: str | None = None) -> Trace:
    """What `text` names and all that came of it; nothing (not `found`) when nothing has it. `only`: one of WAYS.

    About a dozen statements, a few more for each hundred rows and for each level of replay.
    """
    found = _Found(limit)
    if 0 < len(text) <= LONGEST_TEXT and storable(text) == text:
        _begin(found, text, only)
        _follow(found)
    failures = list(WorkFailure.objects.filter(work_item_id__in=list(found.items)).order_by("-id")[: limit + 1])
    found.truncated |= len(failures) > limit
    return Trace(
        [TracedReceipt.of(row) for row in sorted(found.receipts.values(), key=lambda row: (row.received_at, row.id))],
        [
            TracedEvent.of(row, found.work_id(row))
            for row in sorted(found.events.values(), key=lambda row: (row.enqueue_ordinal, row.id))
        ],
        [TracedItem.of(row) for row in sorted(found.items.values(), key=lambda row: (row.lane_ordinal, row.id))],
        [TracedFailure.of(row) for row in sorted(failures[:limit], key=lambda row: row.id)],
        found.truncated,
        found.matches,
    )


def _receipts() -> QuerySet[Receipt]:
    return Receipt.objects.defer("body", "headers").order_by("-id")


def _events() -> QuerySet[Event]:
    return Event.objects.defer("payload").order_by("-id")


def _items() -> QuerySet[WorkItem]:
    return WorkItem.objects.order_by("-id")


@dataclass(frozen=True, slots=True)
class _Naming(Generic[R]):
    """One way in which a text names rows: where to look, and whether a row that the database found really has the name."""

    way: str
    rows: Callable[[_Found, str], Iterable[QuerySet[R]]]
    has_name: Callable[[R, str], bool]


def _numbered(rows: QuerySet[R], text: str) -> Sequence[QuerySet[R]]:
    return [rows.filter(pk=int(text))] if text.isascii() and text.isdecimal() and len(text) < 19 else []


def _sources(found: _Found, text: str) -> Iterator[QuerySet[Event]]:
    for source_type, source_id in _splits(text):
        newest = newest_of_source(source_type, source_id, found.limit + 1)
        found.truncated |= newest.is_cut
        if newest.ids:
            yield _events().filter(id__in=newest.ids)


def _newest(rows: QuerySet[R], column: str, index: str, text: str, limit: int) -> Sequence[QuerySet[R]]:
    """The newest rows with this text in an indexed column; none, without another query, where there is none."""
    table = f"`{rows.model._meta.db_table}`"
    found = _sql.fetch("read_newest_ids", table=table, index=index, column=column, value=text, limit=limit + 1)
    return [rows.filter(pk__in=[row[0] for row in found])] if found else []


_RECEIPT_NAMINGS: Final[Sequence[_Naming[Receipt]]] = (
    _Naming(
        "receipt_delivery",
        lambda found, text: _newest(_receipts(), "IdempotencyKey", "ix_receipt_key", text, found.limit),
        lambda row, text: row.idempotency_key == text,
    ),
    _Naming("receipt", lambda _, text: _numbered(_receipts(), text), lambda _row, _text: True),
)
_EVENT_NAMINGS: Final[Sequence[_Naming[Event]]] = (
    _Naming(
        "event_delivery",  # the readable column keeps 255 characters of a longer delivery id
        lambda found, text: _newest(_events(), "DeliveryId", "ix_event_delivery", text[:255], found.limit),
        lambda row, text: row.delivery_id == text[:255],
    ),
    _Naming("event", lambda _, text: _numbered(_events(), text), lambda _row, _text: True),
    _Naming("source", _sources, lambda row, text: f"{row.source_type}:{row.source_id}" == text),
    _Naming(
        "source_id",
        lambda found, text: _newest(_events(), "SourceId", "ix_event_source", text, found.limit),
        lambda row, text: row.source_id == text,
    ),
)
_ITEM_NAMINGS: Final[Sequence[_Naming[WorkItem]]] = (
    _Naming(
        "work_id",  # is ASCII; comparing the column with anything else is an error of collations
        lambda _, text: [_items().filter(work_id=text)] if text.isascii() else [],
        lambda row, text: row.work_id == text,
    ),
    _Naming(
        "lane",
        lambda found, text: _newest(_items(), "SourceLane", "ix_work_source", text, found.limit),
        lambda row, text: row.source_lane == text,
    ),
)


def _begin(found: _Found, text: str, only: str | None) -> None:
    """What the text names itself."""
    _match(found, found.receipts, "receipt", _RECEIPT_NAMINGS, text, only)
    _match(found, found.events, "event", _EVENT_NAMINGS, text, only)
    _match(found, found.items, "work_item", _ITEM_NAMINGS, text, only)
    order = list(WAYS)
    found.matches.sort(key=lambda match: order.index(match.way))


def _match(  # noqa: PLR0917  # one line for each kind above
    found: _Found, kept: dict[int, R], kind: str, namings: Sequence[_Naming[R]], text: str, only: str | None
) -> None:
    for naming in namings:
        if only in (None, naming.way):
            looked = [row for rows in naming.rows(found, text) for row in rows[: found.limit + 1]]
            rows = [row for row in looked if naming.has_name(row, text)]
            if rows:
                found.matches.append(Match(naming.way, kind, min(len(rows), found.limit), len(rows) > found.limit))
            _keep(found, kept, rows)


def _splits(text: str) -> Iterator[tuple[str, str]]:
    at = text.find(":")
    for _ in range(COLONS):
        if at < 0:
            return
        yield text[:at], text[at + 1 :]
        at = text.find(":", at + 1)


def _follow(found: _Found) -> None:
    """Down and up from what was found: a receipt's events, an item's inputs, an event's items and their replays, and all receipts."""
    limit = found.limit
    _take(found, found.events, _by_id(_events(), lineage.events_of_receipts(found.receipts, limit + 1), found.events))
    inputs = lineage.event_ids_of(list(found.items.values()), limit + 1)
    _take(found, found.events, _by_id(_events(), inputs, found.events))
    events = list(found.events.values())
    found.owners = lineage.owners_of(events)
    took = lineage.selecting_items(events, limit) | set(found.owners.values())
    _take(found, found.items, _by_id(_items(), took, found.items))
    relatives = lineage.replay_lineage(list(found.items.values()))
    _take(found, found.items, _by_id(_items(), relatives, found.items))
    selected = {item.event_id for item in found.items.values() if item.replay_of_work_id}
    _take(found, found.events, _by_id(_events(), selected, found.events))
    _take(found, found.receipts, _by_id(_receipts(), {event.receipt_id for event in found.events.values()}, found.receipts))
    _take(found, found.receipts, _receipts().filter(_same_delivery(found.receipts.values())))


def _by_id(rows: QuerySet[R], ids: Iterable[int], known: Iterable[int]) -> QuerySet[R]:
    wanted = set(ids) - set(known)
    return rows.filter(id__in=wanted) if wanted else rows.none()


def _same_delivery(receipts: Iterable[Receipt]) -> Q:
    """The other receipts of the same delivery ids: the first one and its conflicts."""
    by_endpoint: dict[int, set[str]] = {}
    for receipt in receipts:
        if receipt.idempotency_hash:
            by_endpoint.setdefault(receipt.endpoint_id, set()).add(receipt.idempotency_hash)
    condition = Q(pk__in=[])
    for endpoint_id, hashes in by_endpoint.items():
        condition |= Q(endpoint_id=endpoint_id, idempotency_hash__in=hashes)
    return condition


def _take(found: _Found, kept: dict[int, R], rows: QuerySet[R]) -> None:
    """Keep the newest rows of a query in `kept`."""
    _keep(found, kept, rows[: found.limit + 1])


def _keep(found: _Found, kept: dict[int, R], rows: Iterable[R]) -> None:
    """Keep rows, at most the limit of their kind in all."""
    for row in rows:
        if row.pk in kept:
            continue
        if len(kept) >= found.limit:
            found.truncated = True
            return
        kept[row.pk] = row
