"""Receipts: what arrived, byte for byte, and what became of each item. Also deliveries whose signature failed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse

from connectors.models import Endpoint, Pack, Receipt, UnverifiedDelivery
from connectors.operations import verbs
from connectors.operations.receipts import MOST_AT_ONCE, REREADABLE, reread
from ops_ui.console.actions import action, actor_of, back, reason_of, tell
from ops_ui.console.base import labels, navigation
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.payloads import reads as payload_reads
from ops_ui.console.payloads.masks import erasure_of
from ops_ui.console.payloads.panels import Panel, masked_file, may_see_hashes, panel
from ops_ui.console.receipts.filter import ReceiptFilter
from ops_ui.console.receipts.table import ReceiptTable, UnverifiedTable
from projection.masking import HIDDEN
from projection.models import Event, WorkItem
from projection.states import ReceiptState

ITEMS_SHOWN: Final = 200
"""Items of one receipt that its page lists (HubSpot sends up to 100)."""


@page(navigation.RECEIPTS)
def listing(request: HttpRequest) -> HttpResponseBase:
    rows = Receipt.objects.defer("body", "headers", "verdicts", "url")
    hashes = may_see_hashes(request)
    return show_list(
        request,
        Listing(
            title="Receipts",
            rows=rows,
            filters=ReceiptFilter,
            table=lambda found: ReceiptTable(found, names=labels.packs(row.pack_id for row in found), hashes=hashes),
            empty="No deliveries yet. Point a provider at an endpoint's URL, or load the demo (script/manage load_demo).",
            next_page=navigation.ENDPOINTS,
            template="console/receipts/receipts.html",
        ),
        {
            "may_reroute": request.user.has_perm("connectors.reroute_receipt"),
            "most_at_once": MOST_AT_ONCE,
            "query": request.GET.urlencode(),
        },
    )


@page(navigation.RECEIPTS)
def detail(request: HttpRequest, receipt_id: int) -> HttpResponseBase:
    receipt = get_object_or_404(Receipt.objects.defer("body"), id=receipt_id)
    pack = Pack.objects.filter(id=receipt.pack_id).first()
    erasure = erasure_of(receipt)
    events = list(Event.objects.defer("payload", "route_snapshot").filter(receipt_id=receipt.id).order_by("id")[: ITEMS_SHOWN + 1])
    body = None if erasure else _body(request, receipt, pack)
    if body and body.is_hidden:
        receipt.body_sha256 = HIDDEN
    context: dict[str, Any] = {
        "receipt": receipt,
        "pack": pack,
        "endpoint": Endpoint.objects.filter(id=receipt.endpoint_id).first(),
        "headers": _headers(receipt.headers),
        "body": body,
        "erasure": erasure,
        "items": _items(events[:ITEMS_SHOWN]),
        "items_cut": len(events) > ITEMS_SHOWN,
        "verdicts": _verdicts(receipt.verdicts),
        "may_reroute": request.user.has_perm("connectors.reroute_receipt"),
        "may_reread": erasure is None and receipt.state in REREADABLE and receipt.state != ReceiptState.QUARANTINED,
    }
    return show(request, "console/receipts/receipt.html", f"Receipt {receipt.id}", **context)


def _body(request: HttpRequest, receipt: Receipt, pack: Pack | None) -> Panel:
    return panel(
        request,
        payload_reads.of_receipt(receipt, pack),
        "Body of the receipt",
        download=reverse("admin:receipt_body", args=[receipt.id]),
        reveal=reverse("admin:reveal_receipt", args=[receipt.id]),
    )


@dataclass(frozen=True, slots=True)
class Item:
    """One event of a receipt and the work items that select it."""

    event: Event
    route: str
    work: list[WorkItem]


def _items(events: list[Event]) -> list[Item]:
    names = labels.routes(event.route_id for event in events)
    work: dict[int, list[WorkItem]] = {}
    for item in WorkItem.objects.filter(event_id__in=[event.id for event in events]).order_by("id"):
        work.setdefault(item.event_id, []).append(item)
    return [Item(event, names.get(event.route_id or 0, ""), work.get(event.id, [])) for event in events]


def _headers(text: str) -> list[tuple[str, str]]:
    value: Any = json.loads(text or "{}")
    return sorted((str(name), str(header)) for name, header in value.items()) if isinstance(value, dict) else []


def _verdicts(text: str | None) -> list[dict[str, Any]]:
    value: Any = json.loads(text) if text else []
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@page(navigation.RECEIPTS)
def body(_request: HttpRequest, receipt_id: int) -> HttpResponseBase:
    """The exact bytes as a file; where a route masks fields, the masked text."""
    receipt = get_object_or_404(Receipt.objects.defer("body"), id=receipt_id, erasure_id=None)
    pack = Pack.objects.filter(id=receipt.pack_id).first()
    return masked_file(payload_reads.of_receipt(receipt, pack), f"receipt-{receipt.id}.body")


@page(navigation.UNVERIFIED)
def unverified(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Failed signatures",
            rows=UnverifiedDelivery.objects.defer("body", "headers", "url"),
            filters=None,
            table=lambda found: UnverifiedTable(found, names=labels.endpoints(row.endpoint_id for row in found)),
            empty="No failed signatures. Deliveries that fail the signature check appear here while their endpoint keeps them; "
            "they are not processed.",
            next_page=navigation.ENDPOINTS,
        ),
    )


@page(navigation.UNVERIFIED)
def unverified_detail(request: HttpRequest, delivery_id: int) -> HttpResponseBase:
    delivery = get_object_or_404(UnverifiedDelivery.objects.defer("body"), id=delivery_id)
    endpoint = Endpoint.objects.filter(id=delivery.endpoint_id).first()
    pack = Pack.objects.filter(id=endpoint.pack_id).first() if endpoint else None
    body = panel(request, payload_reads.of_unverified(delivery, pack), "Body of the delivery")
    if body.is_hidden:
        delivery.body_sha256 = HIDDEN
    context = {
        "delivery": delivery,
        "endpoint": endpoint,
        "headers": _headers(delivery.headers),
        "body": body,
    }
    return show(request, "console/receipts/unverified.html", f"Failed signature {delivery.id}", **context)


@action("connectors.reroute_receipt")
def reroute_receipt(request: HttpRequest, receipt_id: int) -> HttpResponse:
    """Gives a quarantined receipt back to the router, for `reason`, with a fresh budget of attempts."""
    get_object_or_404(Receipt.objects.only("id"), id=receipt_id)
    reason = reason_of(request, "The receipt was not re-routed")
    if reason:
        refused = verbs.reroute(receipt_id, actor=actor_of(request), reason=reason)
        tell(request, refused, "The receipt is queued for the router again.")
    return back(request, "admin:receipt", receipt_id)


@action("connectors.reroute_receipt")
def reread_receipt(request: HttpRequest, receipt_id: int) -> HttpResponse:
    """Has a stored receipt read again by the current pack and settings, for `reason`."""
    get_object_or_404(Receipt.objects.only("id"), id=receipt_id)
    reason = reason_of(request, "The receipt was not read again")
    if reason:
        done = reread([receipt_id], actor=actor_of(request), reason=reason)
        tell(request, next(iter(done.refused), None), "The receipt is queued to be read again with the current pack and settings.")
    return back(request, "admin:receipt", receipt_id)


@action("connectors.reroute_receipt")
def reread_receipts(request: HttpRequest) -> HttpResponse:
    """The same for everything that the list's filter selects, oldest first and at most `MOST_AT_ONCE`."""
    filters = ReceiptFilter(request.GET, queryset=Receipt.objects.filter(state__in=REREADABLE, erasure_id=None))
    if not filters.is_valid():
        messages.error(request, "The filter contains an invalid value. Correct it and try again.")
        return back(request, "admin:receipts")
    if not filters.given():
        messages.error(request, "No receipt was read again: filter the list first, for example by state.")
        return back(request, "admin:receipts")
    reason = reason_of(request, "No receipt was read again")
    if reason:
        ids = list(filters.qs.order_by("id").values_list("id", flat=True)[: MOST_AT_ONCE + 1])
        done = reread(ids[:MOST_AT_ONCE], actor=actor_of(request), reason=reason)
        more = " More match; read them again after these are routed." if len(ids) > MOST_AT_ONCE else ""
        messages.success(request, f"Receipts queued to be read again: {len(done.queued):,}. Refused: {len(done.refused):,}.{more}")
    return back(request, "admin:receipts")


URLS: Final[Urls] = (
    ("receipts/<int:receipt_id>/reroute/", reroute_receipt, "reroute_receipt"),
    ("receipts/<int:receipt_id>/reread/", reread_receipt, "reread_receipt"),
    ("receipts/reread/", reread_receipts, "reread_receipts"),
    ("receipts/", listing, "receipts"),
    ("receipts/<int:receipt_id>/", detail, "receipt"),
    ("receipts/<int:receipt_id>/body", body, "receipt_body"),
    ("unverified/", unverified, "unverified"),
    ("unverified/<int:delivery_id>/", unverified_detail, "unverified_delivery"),
)
