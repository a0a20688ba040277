"""Columns of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import exact, when
from ops_ui.console.lists.cells import (
    ConsoleTable,
    NumberColumn,
    TextColumn,
    WhenColumn,
    link,
)


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
