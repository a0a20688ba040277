"""Columns of the list of dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import NONE, badge, short
from ops_ui.console.lists.cells import (
    ConsoleTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
    message,
)


class DeadLetterTable(ConsoleTable):
    chosen = tables.Column(
        "", accessor="work_id", exclude_from_export=True, attrs={"td": {"class": "choose"}, "th": {"class": "choose"}}
    )
    work_id = tables.Column("Work id")
    last_error = tables.Column("Error", empty_values=(), attrs={"td": {"class": "wide"}})
    source_lane = TextColumn("Source lane")
    account = TextColumn()
    route_id = tables.Column("Route")
    attempts = NumberColumn()
    terminal_at = WhenColumn("Failed")
    outcome = tables.Column("Resolution", accessor="work_id")
    error_fingerprint = TextColumn(visible=False)
    created_date = WhenColumn(visible=False)

    def __init__(self, rows: list[Any], *, names: Mapping[int, str], replays: Mapping[str, Any], choosable: bool) -> None:
        super().__init__(rows, names=names)
        self.replays = replays
        self.choosable = choosable
        if not choosable:
            self.columns.hide("chosen")

    def render_chosen(self, record: Any) -> SafeString:
        return format_html(
            '<input type="checkbox" name="work" value="{}" form="choose" aria-label="Select {}">', record.work_id, record.work_id
        )

    def render_work_id(self, value: str) -> SafeString:
        return link("dead_letter", value, short(value))

    def render_last_error(self, value: str | None) -> SafeString:
        return message(value)

    def render_route_id(self, value: int) -> SafeString:
        return self.label(value)

    def value_route_id(self, record: Any) -> str | None:
        return self.label_text(record.route_id)

    def value_outcome(self, record: Any) -> str | None:
        replay = self.replays.get(record.work_id)
        if replay is not None:
            return f"replayed: {replay.state}"
        return "discarded" if record.discarded_at else None

    def render_outcome(self, record: Any) -> SafeString:
        replay = self.replays.get(record.work_id)
        if replay is not None:
            return format_html("replayed {}", badge(replay.state))
        return badge("discarded") if record.discarded_at else NONE
