"""Workers and the audit trail: read-only."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from connectors.models import AuditEntry, Upkeep
from ops_ui import counts, export_columns, exports, rooms
from ops_ui.exports import Export
from ops_ui.pages import Listing, Urls, page, show, show_list
from ops_ui.tables import AuditTable
from projection import clock
from projection.heartbeat import ALIVE_SECONDS
from projection.models import Worker

WORKERS_SHOWN = 200
GONE_SHOWN = timedelta(hours=1)
"""Workers that vanished longer ago are not worth a row."""


@page(rooms.WORKERS)
def workers(request: HttpRequest) -> HttpResponseBase:
    now = clock.now()
    alive = list(counts.live_workers(now)[:WORKERS_SHOWN])
    seen = Worker.objects.filter(seen_at__gte=now - GONE_SHOWN, seen_at__lt=now - timedelta(seconds=ALIVE_SECONDS))
    gone = list(seen.order_by("-seen_at", "id")[:WORKERS_SHOWN])
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("workers", exports.whole([*alive, *gone]), export_columns.workers), wanted)
    upkeep = list(Upkeep.objects.order_by("name"))
    days = settings.HEADRACE_RETENTION_DAYS, settings.HEADRACE_DEAD_RETENTION_DAYS
    return show(request, "console/workers.html", "Workers", alive=alive, gone=gone, now=now, upkeep=upkeep, days=days)


@page(rooms.AUDIT)
def audit(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Audit",
            rows=AuditEntry.objects.defer("detail"),
            filters=None,
            table=AuditTable,
            empty="Nobody has changed anything yet. Every action of an operator leaves an entry here, with its reason.",
        ),
    )


URLS: Final[Urls] = (
    ("workers/", workers, "workers"),
    ("audit/", audit, "audit"),
)
