"""Live records: the latest value of each property of a source record, and the events that set them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from connectors.masking import HIDDEN, BadMask, path
from connectors.models import Record
from connectors.record_fold import properties_of
from ops_ui import labels, rooms
from ops_ui.filters import RecordFilter
from ops_ui.pages import Listing, Urls, page, show, show_list
from ops_ui.payloads import kind_masks
from ops_ui.tables import EventTable, RecordTable
from projection.models import Event

EVENTS_SHOWN: Final = 50
VALUE_MEMBERS: Final = frozenset({"propertyValue", "value"})
"""A mask on one of these hides the value of every property: it is where providers put it in a change event."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a record: its value as exact JSON text, and the ordinal of the fact that set it."""

    name: str
    value: str
    ordinal: int | None
    hidden: bool = False


@page(rooms.RECORDS)
def listing(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Records",
            rows=Record.objects.defer("properties"),
            filters=RecordFilter,
            table=RecordTable,
            empty="No live record yet. A route with the flow “record_table” folds its events into records that you can read here.",
            next_room=rooms.ROUTES,
        ),
    )


@page(rooms.RECORDS)
def detail(request: HttpRequest, record_id: int) -> HttpResponseBase:
    """The record's properties, and the newest events of its source (those of other kinds too)."""
    record = get_object_or_404(Record, id=record_id)
    rows = Event.objects.defer("payload", "route_snapshot", "last_error").filter(
        source_id=record.source_id, source_type=record.source_type, namespace=record.namespace
    )
    events = list(rows.order_by("-id")[:EVENTS_SHOWN])
    context = {
        "record": record,
        "properties": properties(record),
        "events": EventTable(events, names=labels.routes(event.route_id for event in events)),
    }
    return show(request, "console/record.html", f"{record.source_type}:{record.source_id}", **context)


def properties(record: Record) -> list[Property]:
    """The properties of a record by name, values that a route masks hidden. One query."""
    hidden = _hidden_names(kind_masks(record.namespace, record.pack_name, record.event_kind))
    return [
        Property(name, HIDDEN, held.ordinal, True) if hidden & ({name} | VALUE_MEMBERS) else Property(name, held.text, held.ordinal)
        for name, held in sorted(properties_of(record.properties).items())
    ]


def _hidden_names(masks: tuple[str, ...]) -> frozenset[str]:
    """The last step of each mask; a mask that cannot be read hides every value."""
    try:
        return frozenset(path(mask)[-1] for mask in masks)
    except BadMask:
        return VALUE_MEMBERS


URLS: Final[Urls] = (
    ("records/", listing, "records"),
    ("records/<int:record_id>/", detail, "record"),
)
