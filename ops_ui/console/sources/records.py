"""Live records: the latest value of each property of a source record, and the events that set them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from connectors.flows.record_fold import SetValue, properties_of
from connectors.models import Record
from ops_ui.console.base import labels, navigation
from ops_ui.console.events.table import EventTable
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.payloads.masks import kind_masks
from ops_ui.console.sources.filter import RecordFilter
from ops_ui.console.sources.table import RecordTable
from projection.masking import HIDDEN, BadMask, Path, mask, path, written
from projection.models import Event

EVENTS_SHOWN: Final = 50
HOLDERS: Final = frozenset({"propertyValue", "value", "properties", "data"})
"""A mask on one of these hides the value of every property: it is where providers put it, or all of them, in an event."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a record: its value as exact JSON text, and the ordinal of the fact that set it."""

    name: str
    value: str
    ordinal: int | None
    hidden: bool = False


@page(navigation.RECORDS)
def listing(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Records",
            rows=Record.objects.defer("properties"),
            filters=RecordFilter,
            table=RecordTable,
            empty="No records yet. A route with the flow “record_table” keeps the latest state of each record here.",
            next_page=navigation.ROUTES,
        ),
    )


@page(navigation.RECORDS)
def detail(request: HttpRequest, record_id: int) -> HttpResponseBase:
    """The record's properties, and the newest events of its source (those of other kinds too)."""
    record = get_object_or_404(Record, id=record_id)
    rows = Event.objects.defer("payload", "route_snapshot", "last_error").filter(
        source_id=record.source_id, source_type=record.source_type, account=record.account, namespace=record.namespace
    )
    events = list(rows.order_by("-id")[:EVENTS_SHOWN])
    context = {
        "record": record,
        "properties": properties(record),
        "events": EventTable(events, names=labels.routes(event.route_id for event in events)),
    }
    return show(request, "console/sources/record.html", f"{record.source_type}:{record.source_id}", **context)


def properties(record: Record) -> list[Property]:
    """The properties of a record by name, under the masks of the routes that fed it. One query."""
    masks = kind_masks(record.namespace, record.pack_name, record.event_kind)
    held = sorted(properties_of(record.properties).items())
    try:
        paths = [path(mask) for mask in masks]
    except BadMask:  # better too little than too much
        return [Property(name, HIDDEN, one.ordinal, True) for name, one in held]
    holders = HOLDERS | {record.source_type, record.event_kind.partition(".")[0]}
    if any(one[-1] in holders for one in paths):
        return [Property(name, HIDDEN, one.ordinal, True) for name, one in held]
    return [_under(paths, name, one) for name, one in held]


def _under(paths: list[Path], name: str, held: SetValue) -> Property:
    """A property under masks that were written for the payload: each holds from the step that has the property's name."""
    rests = [one[place + 1 :] for one in paths for place, step in enumerate(one) if step == name]
    text = HIDDEN if () in rests else mask(held.text, [written(rest) for rest in rests])
    return Property(name, text, held.ordinal, text != held.text)


URLS: Final[Urls] = (
    ("records/", listing, "records"),
    ("records/<int:record_id>/", detail, "record"),
)
