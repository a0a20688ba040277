"""The filter of the list of events."""

from __future__ import annotations

from typing import Any, Final

import django_filters
from django.db.models import QuerySet

from ops_ui.console.lists.filters import (
    ListFilter,
    exact_filter,
    route_choices,
)
from projection.models import Event

UNROUTED: Final = "~unrouted"


class EventFilter(ListFilter):
    windowed = frozenset({"account", "kind", "route"})
    source = exact_filter("Source id", "source_id")
    account = exact_filter("Account", "account")
    delivery = exact_filter("Delivery id", "delivery_id")
    kind = exact_filter("Event kind", "event_kind")
    route = django_filters.ChoiceFilter(
        label="Route", choices=lambda: [(UNROUTED, "(unrouted)"), *route_choices()], method="by_event_route", empty_label="any"
    )

    class Meta:
        model = Event
        fields: list[str] = []

    def by_event_route(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        return rows.filter(route_id=None) if value == UNROUTED else self.by_route(rows, _name, value)
