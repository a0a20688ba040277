"""Reading: a receipt's bytes become inbound events, outside any transaction (docs/protocol.md#admit).

A body that cannot be read rejects its receipt; an item that cannot be read rejects only itself, with the reason kept on the receipt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from connectors.delivery import LANE_PLACEHOLDERS, NO_RECORD, Headers, Inbound, IngressRequest, Item
from connectors.pack import Pack, refuse_too_many
from connectors.routing.route_table import PackFacts, RouteBook
from projection.exact_json import MOST_DEPTH, NotJson, is_too_deep
from projection.facts import MOST_LANE_PARTS, InboundEvent, RouteFacts, SourceLane
from projection.foreign_code import FAILURES
from projection.identity import delivery_key, item_key, sha256_text
from projection.masked_errors import without_masked
from projection.models import SOURCE_ID_LENGTH
from projection.safe_text import error_text, storable

LANE_LENGTH: Final = 700
NAME_LENGTH: Final = 190
ACCOUNT_LENGTH: Final = 190
DELIVERY_ID_LENGTH: Final = 255
"""Characters of a delivery id that are kept as they came."""
OWN_ID: Final = "event"
REQUEST_ID: Final = "request"
NO_ID: Final = "receipt"
"""By what an event is known: an id of its own, its request's, or none but where it was received. Ids of two kinds are never the same."""

MOST_PARTS: Final = 10_000
"""Records that one item may be about."""
COPIES_BYTES: Final = 32 * 1024 * 1024
"""Each further record that an item is about stores the item's text again: together at most this much a receipt."""
VERDICTS_BYTES: Final = 64 * 1024
"""Of the verdicts on one receipt's items: a packet holds those of a whole batch."""

_PLACEHOLDER: Final = re.compile(r"\{(" + "|".join(LANE_PLACEHOLDERS) + r")\}")


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """A pending receipt, whole."""

    id: int
    pack_id: int
    idempotency_key: str | None
    request: IngressRequest
    account: str = ""
    """Its endpoint's, when it was received."""


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """What became of one item that is not a plain event; kept on the receipt as JSON."""

    item: int
    code: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"item": self.item, "code": self.code, "reason": self.reason}


def verdicts_text(verdicts: Sequence[ItemVerdict]) -> str:
    """JSON array of the verdicts; when they are too many the last one says how many are left out (the counts are always whole)."""
    texts: list[str] = []
    room = VERDICTS_BYTES
    for place, verdict in enumerate(verdicts):
        text = json.dumps(verdict.as_json())
        room -= len(text) + 2
        if room < 0 and texts:
            more = ItemVerdict(verdict.item, "more", f"{len(verdicts) - place} more items have reasons that are not stored")
            texts.append(json.dumps(more.as_json()))
            break
        texts.append(text)
    return f"[{', '.join(texts)}]"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a receipt says. `error`: its body is unreadable and it has no items."""

    receipt_id: int
    items: int = 0
    events: Sequence[InboundEvent] = ()
    rejected: Sequence[ItemVerdict] = ()
    error: str | None = None
    key: str = ""
    """What it was read by (`Pack.reading_key`)."""


class UnfitItem(ValueError):
    """An item names something that cannot be kept exactly (too long, not Unicode, empty)."""


def receipt_of(row: tuple[Any, ...]) -> ReceiptFacts:
    """Facts of a row of `read_receipt_bodies`."""
    request = IngressRequest(row[5], row[6], Headers(json.loads(row[4] or "{}")), bytes(row[3]))
    return ReceiptFacts(row[0], row[1], row[2], request, row[7])


def read_receipt(receipt: ReceiptFacts, book: RouteBook) -> Reading:
    """The inbound events of a receipt by the pack and routes in force. Raises nothing that a body can cause."""
    pack_facts = book.packs[receipt.pack_id]
    pack = book.pack_object(pack_facts.id)
    try:
        items = pack.split_request(receipt.request)
        refuse_too_many(len(items))
    except FAILURES as error:  # a pack is foreign code and a body hostile input: both end as a rejected receipt
        key = pack.reading_key(pack_facts.incarnation)
        return Reading(receipt.id, error=_told(error, receipt.request.body, book.masks(pack_facts.id)), key=key)
    reader = _Reader(receipt, book, pack_facts, pack, many=len(items) > 1)
    for item in items:
        reader.read(item)
    return Reading(receipt.id, len(items), reader.events, reader.rejected, key=pack.reading_key(pack_facts.incarnation))


def _told(error: BaseException, body: bytes, masks: tuple[str, ...]) -> str:
    """Why a body cannot be read, without what that quotes of masked fields. What is wrong with its JSON is told by places alone."""
    if isinstance(error, NotJson):
        return error_text(error)
    return without_masked(error_text(error), [body.decode("utf-8", "replace")] if masks else [], masks, anywhere=True)


@dataclass(slots=True)
class _Reader:
    receipt: ReceiptFacts
    book: RouteBook
    pack_facts: PackFacts
    pack: Pack
    many: bool
    events: list[InboundEvent] = field(default_factory=list)
    rejected: list[ItemVerdict] = field(default_factory=list)
    copied: int = 0
    """Characters that items about several records store again."""

    def read(self, item: Item) -> None:
        try:
            if is_too_deep(item.text):
                raise UnfitItem(f"the item is nested more than {MOST_DEPTH} levels deep, the maximum")
            found = self.pack.read(item)
            inbounds = [found] if isinstance(found, Inbound) else self._bounded(item, list(islice(found, MOST_PARTS + 1)))
            digest = sha256_text(item.text)
            events = [event for part, inbound in enumerate(inbounds) for event in self._events(item, digest, inbound, part)]
        except FAILURES as error:  # as above: one bad item never rejects its siblings
            masks = self.book.masks(self.pack_facts.id)
            reason = without_masked(error_text(error), [item.text], masks, anywhere=True)
            self.rejected.append(ItemVerdict(item.index, "unreadable", reason))
        else:
            self.events += events

    def _bounded(self, item: Item, inbounds: list[Inbound]) -> list[Inbound]:
        """Raises UnfitItem for more records than one item is about in earnest."""
        if len(inbounds) > MOST_PARTS:
            raise UnfitItem(f"the item is about more than {MOST_PARTS} records")
        copies = max(0, len(inbounds) - 1) * len(item.text)
        if self.copied + copies > COPIES_BYTES:
            raise UnfitItem(f"the item is about {len(inbounds)} records, and its text is too long to store for each of them")
        self.copied += copies
        return inbounds

    def _events(self, item: Item, digest: str, inbound: Inbound, part: int) -> list[InboundEvent]:
        routes: list[RouteFacts | None] = list(self.book.matching(self.pack_facts.id, inbound.kind)) or [None]
        return [self._event(item, digest, inbound, part, route) for route in routes]

    def _event(self, item: Item, digest: str, inbound: Inbound, part: int, route: RouteFacts | None) -> InboundEvent:
        kind = _fit("kind", inbound.kind, NAME_LENGTH)
        source_type, given_id = _fit("source type", inbound.source[0], NAME_LENGTH), inbound.source[1]
        identity = self._identity(item, inbound, part)
        delivery_id = _readable_id(identity)
        source_id = delivery_id if given_id is NO_RECORD else _identity("source id", given_id)
        account = self._account(inbound)
        names = names_for(route, source_type, source_id, kind, SourceLane(account, _lane_parts(inbound.lane)))
        namespace, pack_name = self.book.namespace, self.pack_facts.name
        found = item_key(namespace, pack_name, account, *identity)
        keys = () if route else self.book.route_keys.get(pack_name, ())
        return InboundEvent(
            receipt_id=self.receipt.id,
            item=item.index,
            namespace=namespace,
            pack_id=self.pack_facts.id,
            pack_name=pack_name,
            pack_incarnation=self.pack_facts.incarnation,
            route=route,
            provider_kind=kind,
            account=account,
            source_type=source_type,
            source_id=names.source_id,
            source_lane=names.lane.text,
            lane_cuts=names.lane.cuts,
            target_lane=names.target_lane,
            delivery_id=delivery_id,
            delivery_key=delivery_key(found, route.key if route else ""),
            provider_time=_time_hint(inbound.time),
            payload=item.text,
            payload_sha256=digest,
            sibling_keys=tuple(delivery_key(found, key) for key in keys),
        )

    def _account(self, inbound: Inbound) -> str:
        """Whose record it is: as the delivery says, else its endpoint's where the ids are the sender's own. Raises UnfitItem."""
        if inbound.account is not None:
            return _fit("account", inbound.account, ACCOUNT_LENGTH, may_be_empty=True)
        if self.pack.accounts == "delivery":
            raise UnfitItem("the item has no account, and its pack takes the account from each delivery")
        return self.receipt.account if self.pack.accounts == "endpoint" else ""

    def _identity(self, item: Item, inbound: Inbound, part: int) -> tuple[str | int, ...]:
        """What identifies the event among all of its account, its kind first: the event's own id, else the request's with the item
        number, else receipt and item number. `part`: which of the records that the item is about.
        """
        own = inbound.delivery_id or ""
        if own.strip():
            return (OWN_ID, own, part)
        if self.receipt.idempotency_key:
            return (REQUEST_ID, self.receipt.idempotency_key, item.index if self.many else "", part)
        return (NO_ID, self.receipt.id, item.index, part)


def _readable_id(identity: tuple[str | int, ...]) -> str:
    """The delivery id for people and search; one that its column cannot keep is its digest."""
    kind, *values, part = identity
    suffix = f"/{part}" if part else ""
    if kind == REQUEST_ID:
        found = f"{values[0]}{f'#{values[1]}' if values[1] != '' else ''}{suffix}"
    elif kind == NO_ID:
        found = f"receipt:{values[0]}:{values[1]}{suffix}"
    else:
        found = f"{values[0]}{suffix}"
    return found if len(found) <= DELIVERY_ID_LENGTH and storable(found) == found else f"sha256:{sha256_text(found)}"


def _lane_parts(given: object) -> tuple[str, ...]:
    """The parts of a pack's lane; () for none. Raises UnfitItem."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return ()
    if not isinstance(given, str | list | tuple):
        raise UnfitItem(f"the item's lane is a {type(given).__name__}; a pack must give text or a tuple of texts")
    parts = (given,) if isinstance(given, str) else tuple(_identity("part of its lane", part) for part in given)
    if len(parts) > MOST_LANE_PARTS:
        raise UnfitItem(f"the item's lane has {len(parts)} parts; the maximum is {MOST_LANE_PARTS}")
    if any(not part.strip() for part in parts):
        raise UnfitItem("a part of the item's lane is empty")
    return parts


def _identity(what: str, value: object) -> str:
    """An id as text. Raises UnfitItem for none at all, and for what is no id: of a float the digits are lost already."""
    if value is None:
        raise UnfitItem(f"the item has no {what}")
    if not isinstance(value, str | int | Decimal):
        raise UnfitItem(f"the item's {what} is a {type(value).__name__}; a pack must give text or an integer")
    return str(value)


def _fit(what: str, value: object, longest: int, *, may_be_empty: bool = False) -> str:
    """`value` as text that its column keeps exactly. Raises UnfitItem."""
    text = _identity(what, value)
    if not text.strip() and not may_be_empty:
        raise UnfitItem(f"the item has no {what}")
    if len(text) > longest:
        raise UnfitItem(f"the item's {what} has {len(text)} characters; the maximum is {longest}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UnfitItem(f"the item's {what} is not Unicode text (it contains a lone surrogate)") from None
    return text


def _time_hint(moment: object) -> datetime | None:
    """A pack's idea of the provider's time as aware UTC (without a zone: UTC); None for anything else, for it is only a hint."""
    if not isinstance(moment, datetime):
        return None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class RoutedNames:
    """What an event is called under a route; each text is kept exactly."""

    source_id: str
    lane: SourceLane
    target_lane: str


def names_for(route: RouteFacts | None, source_type: str, source_id: str, kind: str, lane: SourceLane) -> RoutedNames:
    """The names of an event under `route` (None: unrouted): folded where it says so, and its target lane. Raises UnfitItem."""
    if route is not None and route.source_id_case == "fold":
        source_id, lane = source_id.casefold(), lane.folded()
    _fit("source lane", lane.text, LANE_LENGTH, may_be_empty=True)
    return RoutedNames(
        _fit("source id", source_id, SOURCE_ID_LENGTH),
        lane,
        target_lane(route, source_type, source_id, kind, lane) if route else "",
    )


def target_lane(route: RouteFacts, source_type: str, source_id: str, kind: str, lane: SourceLane) -> str:
    """The route's template with `{type}`, `{id}`, `{kind}`, `{lane}` and `{account}` filled in, in one pass: a value is no template.

    Raises UnfitItem.
    """
    values = {"type": source_type, "id": source_id, "kind": kind, "lane": lane.text, "account": lane.account}
    filled = _PLACEHOLDER.sub(lambda found: values[found[1]], route.target_lane)
    return _fit("target lane", filled, LANE_LENGTH, may_be_empty=True)
