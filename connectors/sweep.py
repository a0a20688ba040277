"""Sweep: events that no route took when they came are routed by the routes in force now (protocol 2, Rematerialization).

The unrouted fact never changes: a routed copy with a fresh ordinal is admitted, linked to it by RoutedFromEventId (routed in place,
its old ordinal would fall into a finished range and never run). A delivery that a route knows already is not routed to it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from connectors import route_book
from connectors.models import Namespace
from connectors.reading import target_lane
from connectors.route_book import RouteBook
from projection.admit import StaleIncarnation, admit, lock_admission
from projection.coverage import find_known
from projection.event_pages import event_pages
from projection.facts import InboundEvent, RouteFacts
from projection.identity import delivery_key
from projection.logs import log_event
from projection.repair import BATCH
from projection.sending import Sender, chunks
from projection.stored import stored_events
from projection.units import run_unit

sql: Final = Sender(Path(__file__).parent / "sql")


def sweep(*, dry_run: bool = False) -> int:
    """Route what is unrouted and now has a route, in every namespace; number of routed copies made (in a dry run: to be made)."""
    return sum(
        _route(book, ids, dry_run=dry_run)
        for name in Namespace.objects.order_by("name").values_list("name", flat=True)
        if (book := route_book.load(name)).routes
        for ids in _unrouted(name)
    )


def _unrouted(namespace: str) -> Iterator[list[int]]:
    for after, through in event_pages():
        rows = sql.fetch("read_unrouted_events", after=after, through=through, namespace=namespace)
        yield from chunks((row[0] for row in rows), BATCH)


def _route(book: RouteBook, event_ids: Sequence[int], *, dry_run: bool) -> int:
    copies = [copy for event_id, event in stored_events(event_ids) for copy in _copies(book, event_id, event)]
    if not copies:
        return 0

    def unit() -> int:
        lock = lock_admission(book.namespace, {pack.id: pack.incarnation for pack in book.packs.values()})
        fresh, _ = find_known(copies)
        if fresh and not dry_run:
            admit(lock, fresh)
            log_event("route", namespace=book.namespace, count=len(fresh), reason="sweep of unrouted events")
        return len(fresh)

    try:
        return run_unit("sweep", unit)
    except StaleIncarnation:  # a pack was upgraded this moment: the next sweep routes by its new routes
        return 0


def _copies(book: RouteBook, event_id: int, event: InboundEvent) -> list[InboundEvent]:
    pack = book.packs.get(event.pack_id)
    if pack is None:
        return []
    here = replace(event, pack_id=pack.id, pack_name=pack.name, pack_incarnation=pack.incarnation, routed_from=event_id)
    return [_routed(here, route) for route in book.matching(pack.id, event.provider_kind)]


def _routed(event: InboundEvent, route: RouteFacts) -> InboundEvent:
    fold = str.casefold if route.source_id_case == "fold" else str
    source_id, lane = fold(event.source_id), fold(event.source_lane)
    return replace(
        event,
        route=route,
        source_id=source_id,
        source_lane=lane,
        target_lane=target_lane(route, event.source_type, source_id, event.provider_kind, lane),
        delivery_key=delivery_key(event.namespace, event.pack_name, event.delivery_id, route.key),
    )
