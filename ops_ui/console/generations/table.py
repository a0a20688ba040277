"""Columns of the list of generations."""

from __future__ import annotations

from typing import Any

import django_tables2 as tables
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import short
from ops_ui.console.lists.cells import (
    BadgeColumn,
    ConsoleTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
)


class WorkTable(ConsoleTable):
    work_id = tables.Column("Work id")
    state = BadgeColumn()
    source_lane = TextColumn("Source lane")
    account = TextColumn()
    route_id = tables.Column("Route")
    attempts = tables.Column()
    run_after = WhenColumn("Scheduled for")
    created_date = WhenColumn("Created")
    terminal_at = WhenColumn("Ended")
    sorted_by = {"id": "created_date", "terminal_at": "terminal_at"}
    max_attempts = NumberColumn(visible=False)
    claimed_at = WhenColumn(visible=False)
    replay_of_work_id = TextColumn(visible=False)
    error_fingerprint = TextColumn(visible=False)

    def value_route_id(self, record: Any) -> str | None:
        return self.label_text(record.route_id)

    def render_work_id(self, value: str) -> SafeString:
        return link("generation", value, short(value))

    def render_route_id(self, value: int) -> SafeString:
        return self.label(value)

    def render_attempts(self, record: Any) -> str:
        return f"{record.attempts} of {record.max_attempts}"
