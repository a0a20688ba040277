"""Columns of the lists of receipts and of failed signatures. Rows come already cut to a page."""

from __future__ import annotations

from typing import Any

import django_tables2 as tables
from django.utils.safestring import SafeString

from ops_ui.console.lists.cells import (
    BadgeColumn,
    ConsoleTable,
    HashedTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
    message,
)


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
    admitted_receipt_id = tables.Column("Receipt")

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
