"""Facts of stored events, by their own route snapshots: for repair, sweep and replay (docs/protocol.md#stored-events).

A stored event is never routed again: what it was routed by is on the row, also when that route is retired or gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from projection.admission.rows import Fact
from projection.database.clock import from_db
from projection.facts import InboundEvent, RouteFacts
from projection.models import Event
from projection.order import Place


def stored_facts(event_ids: Sequence[int], now: datetime, *, payloads: bool = False) -> list[Fact]:
    """The facts of the given events in their first places, due at their deadline or `now`. One statement; none for no ids.

    To make their work again nobody needs to read what they say; who makes new events of them asks for the `payloads`.
    An event without a readable route snapshot has no fact: what it was routed by cannot be proven, so nothing is made of it. Nor has a
    tombstone.
    """
    if not event_ids:
        return []
    rows = [row for row in Event.objects.read_stored_facts(event_ids, payloads=payloads) if row["ErasureId"] is None]
    proven = cache(proven_route)
    return [_fact(row, route, now) for row in rows if (route := proven(row["RouteSnapshot"])) is not None]


def proven_route(snapshot: str | None) -> RouteFacts | None:
    """The route version that an event's snapshot proves; None where it proves none."""
    try:
        return RouteFacts.from_snapshot(snapshot) if snapshot else None
    except ValueError:
        return None


def stored_events(event_ids: Sequence[int], *, payloads: bool = True) -> list[tuple[int, InboundEvent]]:
    """(id, event) of the given events, also unrouted ones, by ascending id; tombstones left out. One statement; none for no ids."""
    if not event_ids:
        return []
    rows = Event.objects.read_stored_facts(event_ids, payloads=payloads)
    return [(row["Id"], _event(row, proven_route(row["RouteSnapshot"]))) for row in rows if row["ErasureId"] is None]


def _fact(row: dict[str, Any], route: RouteFacts, now: datetime) -> Fact:
    place = Place(row["Id"], row["EnqueueOrdinal"], from_db(row["CreatedDate"]), row["DeliverySequence"])
    deadline = from_db(row["NextAttemptAt"])
    return Fact(_event(row, route), route, place, row["ProjectionKey"], max(deadline or now, now))


def _event(row: dict[str, Any], route: RouteFacts | None) -> InboundEvent:
    return InboundEvent(
        receipt_id=row["ReceiptId"],
        item=row["DeliverySequence"],
        namespace=row["Namespace"],
        pack_id=row["PackId"],
        pack_name=route.pack_name if route else "",
        pack_incarnation=row["PackIncarnation"],
        route=route,
        provider_kind=row["ProviderKind"],
        source_type=row["SourceType"],
        source_id=row["SourceId"],
        account=row["Account"],
        source_lane=row["SourceLane"],
        lane_cuts=row["LaneCuts"],
        target_lane=row["TargetMutationLane"],
        delivery_id=row["DeliveryId"],
        delivery_key=row["DeliveryKey"],
        provider_time=from_db(row["ProviderTimestamp"]),
        payload=row["Payload"],
        payload_sha256=row["PayloadSha256"],
    )
