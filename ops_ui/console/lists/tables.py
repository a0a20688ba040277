"""Columns of the lists. Rows come already cut to a page (`keyset`); nothing here reads the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ops_ui.console.lists.cells import BadgeColumn, ConsoleTable, NumberColumn, TextColumn, WhenColumn, link, message, source_url
from ops_ui.templatetags.console import NONE, badge, exact, short, when
from projection.facts import flow_name


class HashedTable(ConsoleTable):
    """Rows with hashes of texts that may be masked. `hashes`: whether these may be told; asked when they are exported."""

    def __init__(
        self, rows: list[Any], *, names: Mapping[int, str] | None = None, hashes: Callable[[], bool] | None = None
    ) -> None:
        super().__init__(rows, names=names)
        self._hashes = hashes

    def told(self, digest: str) -> str | None:
        return digest if self._hashes and self._hashes() else None


class ReceiptTable(HashedTable):
    id = tables.Column("Receipt")
    state = BadgeColumn()
    received_at = WhenColumn("Received")
    pack_id = tables.Column("Pack")
    idempotency_key = TextColumn("Delivery id")
    event_count = NumberColumn("Events")
    duplicate_count = NumberColumn("Duplicates")
    last_error = tables.Column("Error", empty_values=())
    routed_at = WhenColumn(visible=False)
    item_count = NumberColumn(visible=False)
    conflict_count = NumberColumn(visible=False)
    rejected_count = NumberColumn(visible=False)
    body_sha256 = TextColumn(visible=False)

    def value_body_sha256(self, record: Any) -> str | None:
        return self.told(record.body_sha256)

    def render_id(self, value: int) -> SafeString:
        return link("receipt", value, value)

    def render_pack_id(self, value: int) -> SafeString:
        return self.label(value)

    def value_pack_id(self, record: Any) -> str | None:
        return self.label_text(record.pack_id)

    def render_last_error(self, value: str | None, record: Any) -> SafeString:
        """The receipt's own error, or how many of its items were rejected while their siblings went on."""
        return message(value or (f"items rejected: {record.rejected_count}" if record.rejected_count else None))


class UnverifiedTable(ConsoleTable):
    id = tables.Column("Delivery")
    received_at = WhenColumn("Received")
    endpoint_id = tables.Column("Endpoint")
    reason = tables.Column()
    admitted_receipt_id = tables.Column("Admitted as")

    def render_id(self, value: int) -> SafeString:
        return link("unverified_delivery", value, value)

    def render_endpoint_id(self, value: int) -> SafeString:
        return self.label(value)

    def value_endpoint_id(self, record: Any) -> str | None:
        return self.label_text(record.endpoint_id)

    def render_reason(self, value: str) -> SafeString:
        return message(value)

    def render_admitted_receipt_id(self, value: int) -> SafeString:
        return link("receipt", value, value)


class EventTable(HashedTable):
    id = tables.Column("Event")
    enqueue_ordinal = NumberColumn("Ordinal")
    event_kind = TextColumn("Kind")
    source = tables.Column("Source", accessor="source_id")
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


class WorkTable(ConsoleTable):
    work_id = tables.Column("Work id")
    state = BadgeColumn()
    source_lane = TextColumn("Source lane")
    route_id = tables.Column("Route")
    attempts = tables.Column()
    run_after = WhenColumn("Not before")
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


class DeadLetterTable(ConsoleTable):
    chosen = tables.Column(
        "", accessor="work_id", exclude_from_export=True, attrs={"td": {"class": "choose"}, "th": {"class": "choose"}}
    )
    work_id = tables.Column("Work id")
    last_error = tables.Column("Error", empty_values=(), attrs={"td": {"class": "wide"}})
    source_lane = TextColumn("Source lane")
    route_id = tables.Column("Route")
    attempts = NumberColumn()
    terminal_at = WhenColumn("Died")
    outcome = tables.Column("Since then", accessor="work_id")
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
            '<input type="checkbox" name="work" value="{}" form="choose" aria-label="Choose {}">', record.work_id, record.work_id
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


class SourceTable(ConsoleTable):
    """Rows are the newest event of each source."""

    source = tables.Column("Source", accessor="source_id")
    namespace = TextColumn()
    event_kind = TextColumn("Newest event")
    created_date = WhenColumn("Admitted")
    work = tables.Column("Its work", accessor="id")
    record = tables.Column("Live record", accessor="id")
    id = NumberColumn(visible=False)
    sorted_by = {"id": "created_date"}

    def __init__(self, rows: list[Any], *, work: Mapping[int, Any], records: Mapping[tuple[str, str, str], Any]) -> None:
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
        live = self.records_of.get((record.namespace, record.source_type, record.source_id))
        return record_state(live) if live else None

    def render_event_kind(self, record: Any) -> SafeString:
        return link("event", record.id, exact(record.event_kind))

    def render_work(self, record: Any) -> SafeString:
        item = self.work.get(record.id)
        return link("generation", item.work_id, badge(item.state)) if item else NONE

    def render_record(self, record: Any) -> SafeString:
        live = self.records_of.get((record.namespace, record.source_type, record.source_id))
        return link("record", live.id, badge(record_state(live))) if live else NONE


class RecordTable(ConsoleTable):
    id = tables.Column("Record", accessor="source_id")
    event_kind = TextColumn("Kind")
    pack_name = TextColumn("Pack")
    deleted = tables.Column("State", accessor="deleted")
    event_count = NumberColumn("Events")
    last_ordinal = NumberColumn("Newest ordinal")
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


class AuditTable(ConsoleTable):
    """Each actor, action and target leads to what else there is of it."""

    at = WhenColumn("When")
    actor = tables.Column()
    action = tables.Column()
    target = tables.Column(attrs={"td": {"class": "wide"}})
    count = NumberColumn()
    reason = TextColumn(attrs={"td": {"class": "wide"}})
    id = NumberColumn(visible=False)
    detail = TextColumn(visible=False)

    def render_at(self, value: datetime, record: Any) -> SafeString:
        return link("audit_entry", record.id, when(value))

    def render_actor(self, value: str) -> SafeString:
        return self._same("actor", value)

    def render_action(self, value: str) -> SafeString:
        return self._same("action", value)

    def render_target(self, value: str) -> SafeString:
        return self._same("target", value)

    def _same(self, name: str, value: str) -> SafeString:
        return format_html(
            '<a class="quiet-link" href="{}?{}">{}</a>', reverse("admin:audit"), urlencode({name: value}), exact(value)
        )
