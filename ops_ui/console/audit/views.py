"""The audit trail: who did what, when and why. Read-only, as the table itself is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from connectors.models import AuditEntry
from ops_ui.console.audit import reads as audit_reads
from ops_ui.console.audit.reads import AuditFilter
from ops_ui.console.audit.table import AuditTable
from ops_ui.console.base import navigation
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from projection.cli import iso

AROUND: Final = timedelta(minutes=5)
"""Before and after an entry: what else happened then."""


@page(navigation.AUDIT)
def listing(request: HttpRequest) -> HttpResponseBase:
    """Newest first, or turned round. Two statements, and at most twenty more for a search."""
    return show_list(
        request,
        Listing(
            title="Audit log",
            rows=AuditEntry.objects.all(),
            filters=AuditFilter,
            table=AuditTable,
            empty="No entries yet. Every operator action is recorded here.",
            next_page=navigation.PACKS,
            order=audit_reads.BY_TIME,
            read_in_order=audit_reads.find,
        ),
    )


@page(navigation.AUDIT)
def detail(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    entry = get_object_or_404(AuditEntry, id=entry_id)
    around = {"since": iso(entry.at - AROUND), "until": iso(entry.at + AROUND)}
    return show(
        request,
        "console/audit/audit_entry.html",
        f"Audit entry {entry.id}",
        entry=entry,
        members=_members(entry.detail),
        around=around,
    )


def _members(text: str) -> list[tuple[str, str]]:
    """What the entry tells beside its columns, by name: texts as they are, all else as JSON."""
    value: Any = json.loads(text or "{}", parse_float=str)
    if not isinstance(value, dict):
        value = {"": value}
    return [(name, one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) for name, one in value.items()]


URLS: Final[Urls] = (
    ("audit/", listing, "audit"),
    ("audit/<int:entry_id>/", detail, "audit_entry"),
)
