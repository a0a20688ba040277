"""Trace: paste an id, see what became of it: receipts → events → work items → failures.

The text may be a delivery id, a source id (or `type:id`), a lane, a WorkId or a receipt's number. Only indexed look-ups, at most
LIMIT rows of each kind, and no payload. A database may compare texts blindly (trailing spaces, case): equality is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from django.db.models import Model, Q, QuerySet

from connectors.models import Receipt
from connectors.traced import TracedEvent, TracedFailure, TracedItem, TracedReceipt
from projection import lineage
from projection.models import Event, WorkFailure, WorkItem
from projection.retry_policy import storable

R = TypeVar("R", bound=Model)

LIMIT: Final = 500
"""Rows of each kind that one answer holds; more set `truncated`."""
LONGEST_TEXT: Final = 700
"""Characters of the longest searchable text (a lane); a longer one names nothing."""
COLONS: Final = 8
"""`type:id` is tried at each of the first colons: types and ids may contain some themselves."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that an id leads to, in the order in which it happened."""

    receipts: list[TracedReceipt]
    events: list[TracedEvent]
    work_items: list[TracedItem]
    failures: list[TracedFailure]
    truncated: bool
    """Some kind had more than LIMIT rows; the newest are shown."""

    @property
    def found(self) -> bool:
        return bool(self.receipts or self.events or self.work_items)


@dataclass(slots=True)
class _Found:
    receipts: dict[int, Receipt] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    items: dict[int, WorkItem] = field(default_factory=dict)
    truncated: bool = False


def trace(text: str, limit: int = LIMIT) -> Trace:
    """What `text` names and all that came of it; nothing (not `found`) when nothing has it.

    About a dozen statements, a few more for each hundred rows and for each level of replay.
    """
    found = _Found()
    if 0 < len(text) <= LONGEST_TEXT and storable(text) == text:
        _seed(found, text, limit)
        _follow(found, limit)
    failures = list(WorkFailure.objects.filter(work_item_id__in=list(found.items)).order_by("-id")[: limit + 1])
    found.truncated |= len(failures) > limit
    return Trace(
        [TracedReceipt.of(row) for row in sorted(found.receipts.values(), key=lambda row: (row.received_at, row.id))],
        [TracedEvent.of(row) for row in sorted(found.events.values(), key=lambda row: (row.enqueue_ordinal, row.id))],
        [TracedItem.of(row) for row in sorted(found.items.values(), key=lambda row: (row.lane_ordinal, row.id))],
        [TracedFailure.of(row) for row in sorted(failures[:limit], key=lambda row: row.id)],
        found.truncated,
    )


def _receipts() -> QuerySet[Receipt]:
    return Receipt.objects.defer("body", "headers").order_by("-id")


def _events() -> QuerySet[Event]:
    return Event.objects.defer("payload").order_by("-id")


def _items() -> QuerySet[WorkItem]:
    return WorkItem.objects.order_by("-id")


def _seed(found: _Found, text: str, limit: int) -> None:
    """What the text names itself."""
    _take(found, found.receipts, _receipts().filter(idempotency_key=text), limit, lambda row: row.idempotency_key == text)
    if text.isascii() and text.isdecimal() and len(text) < 19:
        _take(found, found.receipts, _receipts().filter(id=int(text)), limit)
    delivered = text[:255]  # the readable column keeps so many characters of a longer delivery id
    _take(found, found.events, _events().filter(delivery_id=delivered), limit, lambda row: row.delivery_id == delivered)
    _take(found, found.events, _events().filter(source_id=text), limit, lambda row: row.source_id == text)
    for source_type, source_id in _splits(text):
        rows = _events().filter(source_id=source_id, source_type=source_type)
        _take(found, found.events, rows, limit, lambda row: f"{row.source_type}:{row.source_id}" == text)
    if text.isascii():  # a WorkId is; comparing the column with anything else is an error of collations
        _take(found, found.items, _items().filter(work_id=text), limit, lambda row: row.work_id == text)
    _take(found, found.items, _items().filter(source_lane=text), limit, lambda row: row.source_lane == text)


def _splits(text: str) -> Iterator[tuple[str, str]]:
    at = text.find(":")
    for _ in range(COLONS):
        if at < 0:
            return
        yield text[:at], text[at + 1 :]
        at = text.find(":", at + 1)


def _follow(found: _Found, limit: int) -> None:
    """Down and up from the seeds: a receipt's events, an item's inputs, an event's items and their replays, and all receipts."""
    if found.receipts:
        _take(found, found.events, _events().filter(receipt_id__in=list(found.receipts)), limit)
    inputs = lineage.event_ids_of(list(found.items.values()), limit + 1)
    _take(found, found.events, _by_id(_events(), inputs, found.events), limit)
    took = lineage.items_of(list(found.events.values()), limit)
    _take(found, found.items, _by_id(_items(), took, found.items), limit)
    relatives = lineage.replay_lineage(list(found.items.values()))
    _take(found, found.items, _by_id(_items(), relatives, found.items), limit)
    selected = {item.event_id for item in found.items.values() if item.replay_of_work_id}
    _take(found, found.events, _by_id(_events(), selected, found.events), limit)
    _take(found, found.receipts, _by_id(_receipts(), {event.receipt_id for event in found.events.values()}, found.receipts), limit)
    _take(found, found.receipts, _receipts().filter(_same_delivery(found.receipts.values())), limit)


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


def _take(
    found: _Found, kept: dict[int, R], rows: QuerySet[R], limit: int, is_exact: Callable[[R], bool] = lambda _row: True
) -> None:
    """Keep the newest rows of a query in `kept`, at most `limit` of its kind in all."""
    for row in [row for row in rows[: limit + 1] if is_exact(row)]:
        if row.pk in kept:
            continue
        if len(kept) >= limit:
            found.truncated = True
            return
        kept[row.pk] = row
