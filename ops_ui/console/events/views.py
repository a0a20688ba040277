"""Events: the immutable facts, their exact payload and the work that they became."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from connectors.models import Pack, Receipt, Route
from ops_ui.console.base import labels, navigation
from ops_ui.console.events.filter import EventFilter
from ops_ui.console.events.table import EventTable
from ops_ui.console.generations.range_reads import work_of
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.payloads import reads as payload_reads
from ops_ui.console.payloads.masks import erasure_of
from ops_ui.console.payloads.panels import event_panel, masked_file, may_see_hashes
from projection.masking import HIDDEN
from projection.models import Event


@page(navigation.EVENTS)
def listing(request: HttpRequest) -> HttpResponseBase:
    hashes = may_see_hashes(request)
    return show_list(
        request,
        Listing(
            title="Events",
            rows=Event.objects.defer("payload", "route_snapshot", "last_error"),
            filters=EventFilter,
            table=lambda found: EventTable(found, names=labels.routes(row.route_id for row in found), hashes=hashes),
            empty="No events yet. The router turns receipts into events.",
            next_page=navigation.WORKERS,
        ),
    )


@page(navigation.EVENTS)
def detail(request: HttpRequest, event_id: int) -> HttpResponseBase:
    event = get_object_or_404(Event.objects.defer("payload"), id=event_id)
    erasure = erasure_of(event)
    shown = None if erasure else event_panel(request, event)
    if shown and shown.is_hidden:
        event.payload_sha256 = HIDDEN
    context = {
        "event": event,
        "route": Route.objects.filter(id=event.route_id).first() if event.route_id else None,
        "pack": Pack.objects.filter(id=event.pack_id).first(),
        "receipt": Receipt.objects.only("id", "received_at", "state").filter(id=event.receipt_id).first(),
        "work": work_of(event),
        "payload": shown,
        "erasure": erasure,
        "copies": list(Event.objects.only("id").filter(receipt_id=event.receipt_id, routed_from_event_id=event.id)[:50]),
    }
    return show(request, "console/events/event.html", f"Event {event.id}", **context)


@page(navigation.EVENTS)
def payload(_request: HttpRequest, event_id: int) -> HttpResponseBase:
    """The exact payload as a file; where its route masks fields, the masked text."""
    event = get_object_or_404(Event.objects.defer("payload"), id=event_id, erasure_id=None)
    return masked_file(payload_reads.of_event(event), f"event-{event.id}.json")


URLS: Final[Urls] = (
    ("events/", listing, "events"),
    ("events/<int:event_id>/", detail, "event"),
    ("events/<int:event_id>/payload", payload, "event_payload"),
)
