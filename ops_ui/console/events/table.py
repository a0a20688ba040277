"""Columns of the list of events."""

from __future__ import annotations

from typing import Any

import django_tables2 as tables
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import exact
from ops_ui.console.lists.cells import (
    HashedTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
)


class EventTable(HashedTable):
    id = tables.Column("Event")
    enqueue_ordinal = NumberColumn("Sequence")
    event_kind = TextColumn("Kind")
    source = tables.Column("Source", accessor="source_id")
    account = TextColumn()
    route_id = tables.Column("Route", empty_values=())
    delivery_id = TextColumn("Delivery id")
    created_date = WhenColumn("Admitted")
    namespace = TextColumn(visible=False)
    provider_kind = TextColumn(visible=False)
    provider_timestamp = WhenColumn(visible=False)
    receipt_id = NumberColumn(visible=False)
    payload_sha256 = TextColumn(visible=False)

    def value_payload_sha256(self, record: Any) -> str | None:
        return self.told(record.payload_sha256)

    def value_source(self, record: Any) -> str:
        return f"{record.source_type}:{record.source_id}"

    def value_route_id(self, record: Any) -> str | None:
        return self.label_text(record.route_id)

    def render_id(self, value: int) -> SafeString:
        return link("event", value, value)

    def render_source(self, record: Any) -> SafeString:
        return exact(f"{record.source_type}:{record.source_id}")

    def render_route_id(self, value: int | None) -> SafeString:
        return self.label(value)
