"""Sweep: events that no route took when they came are routed by the routes in force now (docs/protocol.md#stored-events).

The unrouted fact never changes: a routed copy with a fresh ordinal is admitted, linked to it by RoutedFromEventId (routed in place,
its old ordinal would fall into a finished range and never run). A delivery that a route knows already is not routed to it again. A fact
that cannot be routed stays as it is, is named with the reason, and keeps no other from being routed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from connectors.models import Namespace
from connectors.routing import route_table
from connectors.routing.reading import UnfitItem, names_for
from connectors.routing.route_table import RouteBook
from projection.admission.admit import StaleIncarnation, admit
from projection.admission.coverage import find_known
from projection.admission.stored_events import stored_events
from projection.database.bisecting import run_bisecting
from projection.database.catalogue import Sender, chunks
from projection.facts import InboundEvent, RouteFacts
from projection.identity import delivery_key
from projection.integrity.event_pages import event_pages
from projection.integrity.repair import BATCH, refused_by
from projection.logs import log_event
from projection.refusals import Refused
from projection.safe_text import error_text

sql: Final = Sender(Path(__file__).parent)

UNIT_BYTES: Final = 32 * 1024 * 1024
"""Payloads of the copies that one transaction makes, as many as a batch of receipts may bring."""
FENCE_ROUNDS: Final = 5
"""A route published while its facts are routed is rare; five in a row are an operator's mistake."""


@dataclass(slots=True)
class Swept:
    """What a sweep did (or, in a dry run, would do), and which facts could not be routed: `unfit`, or as a repair refuses."""

    copies: int = 0
    late: int = 0
    """Facts of which a younger one of the same source is routed already."""
    refused: list[Refused] = field(default_factory=list)


def sweep(*, dry_run: bool = False) -> Swept:
    """Route what is unrouted and now has a route, in every namespace. A dry run counts the copies; it does not try to admit them.

    Raises StaleIncarnation when packs or routes are changed all the while.
    """
    swept = Swept()
    for name in Namespace.objects.order_by("name").values_list("name", flat=True):
        if route_table.load(name).routes:
            for ids in _unrouted(name):
                _route(name, ids, swept, dry_run=dry_run)
    return swept


def _unrouted(namespace: str) -> Iterator[list[int]]:
    for after, through in event_pages():
        rows = sql.fetch("read_unrouted_events", after=after, through=through, namespace=namespace)
        yield from chunks((row[0] for row in rows), BATCH)


def _route(namespace: str, event_ids: Sequence[int], swept: Swept, *, dry_run: bool) -> None:
    """By the routes in force; once more when they change in between. Nothing is copied twice: what is known stays as it is."""
    for _ in range(FENCE_ROUNDS):
        book = route_table.load(namespace)
        done = Swept()
        try:
            for ids in _units(book, event_ids):
                done.late += sql.fetch("count_late_events", ids=tuple(ids))[0][0]
                _route_some(book, ids, done, dry_run=dry_run)
        except StaleIncarnation:
            swept.copies += 0 if dry_run else done.copies
            swept.late += 0 if dry_run else done.late
            continue
        swept.copies += done.copies
        swept.late += done.late
        swept.refused += done.refused
        return
    raise StaleIncarnation(f"the packs or routes of namespace {namespace!r} were changed {FENCE_ROUNDS} times during one sweep")


def _units(book: RouteBook, event_ids: Sequence[int]) -> Iterator[list[int]]:
    """Those of the facts that a route takes, so many at a time that their copies fit in one transaction. Reads no payload."""
    takers = {event_id: len(_takers(book, event)) for event_id, event in stored_events(event_ids, payloads=False)}
    wanted = [event_id for event_id, count in takers.items() if count]
    unit: list[int] = []
    room = UNIT_BYTES
    for event_id, length in sql.fetch("read_payload_lengths", ids=tuple(wanted)) if wanted else ():
        if unit and takers[event_id] * length > room:
            yield unit
            unit, room = [], UNIT_BYTES
        unit.append(event_id)
        room -= takers[event_id] * length
    if unit:
        yield unit


def _route_some(book: RouteBook, event_ids: Sequence[int], swept: Swept, *, dry_run: bool) -> None:
    parts: dict[int, list[InboundEvent]] = {}
    for event_id, event in stored_events(event_ids):
        parts[event_id] = []
        for route in _takers(book, event):
            try:
                parts[event_id].append(_copy(book, event_id, event, route))
            except UnfitItem as error:
                _refuse(swept, book.namespace, Refused(str(event_id), "unfit", f"route {route.key}: {error_text(error)}"))

    def at_fault(part: int, error: Exception) -> None:
        _refuse(swept, book.namespace, refused_by(part, error))

    unit = partial(_admit_copies, book, parts, dry_run=dry_run)
    swept.copies += sum(run_bisecting("sweep", [one for one in parts if parts[one]], unit, at_fault, of_all=(StaleIncarnation,)))


def _refuse(swept: Swept, namespace: str, refused: Refused) -> None:
    log_event(
        "route",
        level="error",
        namespace=namespace,
        event_id=int(refused.id),
        error=refused.reason,
        reason="the unrouted event was not routed",
    )
    swept.refused.append(refused)


def _admit_copies(book: RouteBook, parts: Mapping[int, Sequence[InboundEvent]], event_ids: Sequence[int], *, dry_run: bool) -> int:
    """The admitted transaction; number of copies. What is known by now is left out."""
    lock = route_table.lock(book)
    fresh, _ = find_known([copy for event_id in event_ids for copy in parts[event_id]])
    if fresh and not dry_run:
        admit(lock, fresh)
        log_event("route", namespace=book.namespace, count=len(fresh), reason="unrouted events routed")
    return len(fresh)


def _takers(book: RouteBook, event: InboundEvent) -> list[RouteFacts]:
    pack = book.packs.get(event.pack_id)
    return book.matching(pack.id, event.provider_kind) if pack else []


def _copy(book: RouteBook, event_id: int, event: InboundEvent, route: RouteFacts) -> InboundEvent:
    """The event as `route` takes it. Raises UnfitItem."""
    pack = book.packs[event.pack_id]
    names = names_for(route, event.source_type, event.source_id, event.provider_kind, event.lane)
    return replace(
        event,
        pack_id=pack.id,
        pack_name=pack.name,
        pack_incarnation=pack.incarnation,
        routed_from=event_id,
        route=route,
        source_id=names.source_id,
        source_lane=names.lane.text,
        lane_cuts=names.lane.cuts,
        target_lane=names.target_lane,
        delivery_key=delivery_key(event.delivery_key, route.key),
    )
