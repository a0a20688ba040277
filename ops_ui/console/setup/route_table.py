"""Columns of the list of routes."""

from __future__ import annotations

from typing import Any

import django_tables2 as tables
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import badge, exact
from ops_ui.console.lists.cells import (
    ConsoleTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
)
from projection.facts import flow_name


class RouteTable(ConsoleTable):
    id = tables.Column("Route", accessor="route_key")
    version = NumberColumn()
    state = tables.Column(accessor="is_current")
    pack_name = TextColumn("Pack")
    event_kind = TextColumn("Kind")
    mode = tables.Column(accessor="invocation_mode")
    flow = tables.Column(accessor="companion_flow")
    settle_seconds = tables.Column("Settle")
    created_at = WhenColumn("Published")

    def render_id(self, record: Any) -> SafeString:
        return link("route", record.id, exact(record.route_key))

    def value_state(self, record: Any) -> str:
        return route_state(record)

    def value_flow(self, record: Any) -> str:
        return flow_name(record.companion_pack, record.companion_flow)

    def render_state(self, record: Any) -> SafeString:
        return badge(route_state(record))

    def render_mode(self, record: Any) -> str:
        return str(record.get_invocation_mode_display())

    def render_flow(self, record: Any) -> SafeString:
        return exact(flow_name(record.companion_pack, record.companion_flow))

    def render_settle_seconds(self, value: float) -> str:
        return f"{value:g} s"


def route_state(route: Any) -> str:
    if route.deleted_at:
        return "retired"
    if not route.is_current:
        return "replaced"
    return "paused" if route.is_paused else "current"
