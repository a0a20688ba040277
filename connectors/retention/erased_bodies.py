"""Erasure of bodies: the receipts and held deliveries in which a person's items came, found by reading them as the router does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from connectors.delivery import Headers, IngressRequest
from connectors.registry import installed_packs
from connectors.routing import route_table
from connectors.routing.reading import ReceiptFacts, read_receipt, receipt_of
from connectors.routing.route_table import RouteBook
from projection.database.catalogue import Sender, chunks
from projection.states import ReceiptState

sql: Final = Sender(Path(__file__).parent)

PAGE: Final = 1000
"""Receipts looked at by one read, without their bodies."""
BODIES: Final = 20
"""Bodies read at once; one may have 25 MiB."""
ARRIVAL_SLACK: Final = timedelta(hours=1)
"""A copy may have arrived this long before the one that was admitted first: it was committed later, or spooled."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source record in one namespace: whose it is, its type, its id as given and as a route may have folded it, and the packs that
    name it.
    """

    namespace: str
    account: str
    type: str
    ids: tuple[str, ...]
    pack_ids: tuple[int, ...]
    pack_names: tuple[str, ...]

    def is_named(self, account: str, source_type: str, source_id: str) -> bool:
        """Whether the names are this source's, by their exact characters, the id folded or not."""
        if (account, source_type) != (self.account, self.type):
            return False
        return source_id in self.ids or source_id.casefold() in self.ids


def holding(source: Source, ids: Sequence[int]) -> list[int]:
    """Those of the receipts in which the source's pack reads an item of it. Bodies are read a few at a time."""
    book = route_table.load(source.namespace)
    return [
        row[0]
        for some in chunks(ids, BODIES)
        for row in sql.fetch("read_bodies", ids=tuple(some))
        if holds(source, receipt_of(row), book)
    ]


def holds(source: Source, receipt: ReceiptFacts, book: RouteBook) -> bool:
    """Whether an item of the source can be read out of the receipt. What cannot be read at all holds nothing that anyone knows of."""
    if receipt.pack_id not in source.pack_ids or receipt.pack_id not in book.packs:
        return False
    try:
        events = read_receipt(receipt, book).events
    except installed_packs.PackNotLoaded:
        return False
    return any(source.is_named(event.account, event.source_type, event.source_id) for event in events)


def repeats(source: Source, since: datetime | None) -> Iterator[list[int]]:
    """Ids of routed receipts, received from `since` (naive) on, that brought something again and hold items of the source."""
    if since is None:
        return
    for state in (ReceiptState.ROUTED, ReceiptState.PARTIAL):
        after = (since - ARRIVAL_SLACK, 0)
        place = {"namespace": source.namespace, "state": state.value, "limit": PAGE}
        while rows := sql.fetch("read_repeats", after_time=after[0], after_id=after[1], **place):
            after = rows[-1][:2]
            found = holding(source, [row[1] for row in rows if row[2]])
            if found:
                yield found


def unverified(source: Source) -> list[int]:
    """Ids of held, unverified deliveries that hold items of the source."""
    book = route_table.load(source.namespace)
    found: list[int] = []
    after = 0
    while rows := sql.fetch("read_unverified_bodies", namespace=source.namespace, after=after, limit=BODIES):
        after = rows[-1][0]
        for one, pack_id, body, headers, url, account in rows:
            request = IngressRequest("POST", url, Headers(json.loads(headers or "{}")), bytes(body))
            if holds(source, ReceiptFacts(one, pack_id, None, request, account), book):
                found.append(one)
    return found
