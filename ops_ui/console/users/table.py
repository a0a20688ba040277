"""Columns of the list of users."""

from __future__ import annotations

from typing import Any

import django_tables2 as tables
from django.utils.safestring import SafeString

from ops_ui.console.base.tags import exact
from ops_ui.console.lists.cells import ConsoleTable, WhenColumn, link


class UserTable(ConsoleTable):
    username = tables.Column("Name")
    role = tables.Column()
    is_active = tables.Column("May log in")
    last_login = WhenColumn("Last login")
    date_joined = WhenColumn("Created")

    def render_username(self, value: str, record: Any) -> SafeString:
        return link("user", record.pk, exact(value))

    def render_is_active(self, value: bool) -> str:
        return "yes" if value else "no"
