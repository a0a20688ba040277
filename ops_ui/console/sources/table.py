"""Columns of the lists of sources and of live records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import NONE, badge, exact
from ops_ui.console.lists.cells import (
    ConsoleTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
    source_url,
)


class SourceTable(ConsoleTable):
    """Rows are the newest event of each source."""

    source = tables.Column("Source", accessor="source_id")
    account = TextColumn()
    namespace = TextColumn()
    event_kind = TextColumn("Newest event")
    created_date = WhenColumn("Admitted")
    work = tables.Column("Latest run", accessor="id")
    record = tables.Column("Record", accessor="id")
    id = NumberColumn(visible=False)
    sorted_by = {"id": "created_date"}

    def __init__(self, rows: list[Any], *, work: Mapping[int, Any], records: Mapping[tuple[str, str, str, str], Any]) -> None:
        super().__init__(rows)
        self.work = work
        self.records_of = records

    def render_source(self, record: Any) -> SafeString:
        return format_html('<a href="{}">{}</a>', source_url(record), exact(f"{record.source_type}:{record.source_id}"))

    def value_source(self, record: Any) -> str:
        return f"{record.source_type}:{record.source_id}"

    def value_work(self, record: Any) -> str | None:
        item = self.work.get(record.id)
        return item.state if item else None

    def value_record(self, record: Any) -> str | None:
        live = self.records_of.get((record.namespace, record.account, record.source_type, record.source_id))
        return record_state(live) if live else None

    def render_event_kind(self, record: Any) -> SafeString:
        return link("event", record.id, exact(record.event_kind))

    def render_work(self, record: Any) -> SafeString:
        item = self.work.get(record.id)
        return link("generation", item.work_id, badge(item.state)) if item else NONE

    def render_record(self, record: Any) -> SafeString:
        live = self.records_of.get((record.namespace, record.account, record.source_type, record.source_id))
        return link("record", live.id, badge(record_state(live))) if live else NONE


class RecordTable(ConsoleTable):
    id = tables.Column("Record", accessor="source_id")
    account = TextColumn()
    event_kind = TextColumn("Kind")
    pack_name = TextColumn("Pack")
    deleted = tables.Column("State", accessor="deleted")
    event_count = NumberColumn("Events")
    last_ordinal = NumberColumn("Newest sequence")
    updated_at = WhenColumn("Changed")

    def render_id(self, record: Any) -> SafeString:
        return link("record", record.id, exact(f"{record.source_type}:{record.source_id}"))

    def value_id(self, record: Any) -> str:
        return f"{record.source_type}:{record.source_id}"

    def value_deleted(self, record: Any) -> str:
        return record_state(record)

    def render_deleted(self, record: Any) -> SafeString:
        return badge(record_state(record))


def record_state(record: Any) -> str:
    return "merged" if record.merged_into else "deleted" if record.deleted else "live"
