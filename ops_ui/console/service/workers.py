"""Workers, and what the installation does by itself: the last audit and retention. Read-only."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from connectors.models import Upkeep
from connectors.operations import audit_results
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.service import export
from ops_ui.monitoring import counts
from projection.database import clock
from projection.leases import ALIVE_SECONDS
from projection.models import Worker

WORKERS_SHOWN = 200
GONE_SHOWN = timedelta(hours=1)
"""Workers that vanished longer ago are not worth a row."""


@page(navigation.WORKERS)
def listing(request: HttpRequest) -> HttpResponseBase:
    now = clock.now()
    alive = list(counts.live_workers(now)[:WORKERS_SHOWN])
    seen = Worker.objects.filter(seen_at__gte=now - GONE_SHOWN, seen_at__lt=now - timedelta(seconds=ALIVE_SECONDS))
    gone = list(seen.order_by("-seen_at", "id")[:WORKERS_SHOWN])
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("workers", exports.whole([*alive, *gone]), export.workers), wanted)
    upkeep = list(Upkeep.objects.exclude(name=audit_results.NAME).order_by("name"))
    proof = audit_results.last()
    days = settings.HEADRACE_RETENTION_DAYS, settings.HEADRACE_DEAD_RETENTION_DAYS
    context = {"alive": alive, "gone": gone, "now": now, "upkeep": upkeep, "days": days}
    context |= {"audit": proof, "audit_age": proof.age(now) if proof else None}
    return show(request, "console/service/workers.html", "Workers", **context)


URLS: Final[Urls] = (("workers/", listing, "workers"),)
