"""Packs with their endpoints, workers and the audit trail: read-only; secrets are never shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from connectors import secrets
from connectors.endpoints_cache import keeps_unverified, public_base
from connectors.ingress_path import ingress_path
from connectors.models import AuditEntry, Connection, Endpoint, Pack, Upkeep
from connectors.states import PackState
from ops_ui import counts, rooms
from ops_ui.pages import Listing, Urls, page, show, show_list
from ops_ui.tables import AuditTable
from projection import clock
from projection.heartbeat import ALIVE_SECONDS
from projection.models import Worker

PACKS_SHOWN = 200
WORKERS_SHOWN = 200
GONE_SHOWN = timedelta(hours=1)
"""Workers that vanished longer ago are not worth a row."""


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint without its secrets: only how many are live, in words."""

    endpoint: Endpoint
    url: str
    secrets: str
    keeps_unverified: bool


@page(rooms.PACKS)
def packs(request: HttpRequest) -> HttpResponseBase:
    now = clock.now()
    rows = list(Pack.objects.exclude(state=PackState.REMOVED).order_by("namespace", "name", "-id")[:PACKS_SHOWN])
    ends: dict[int, list[EndpointRow]] = {}
    for endpoint in Endpoint.objects.filter(pack_id__in=[pack.id for pack in rows]).order_by("slug", "id"):
        ends.setdefault(endpoint.pack_id, []).append(_endpoint_row(endpoint, now))
    context = {
        "packs": [(pack, ends.get(pack.id, [])) for pack in rows],
        "connections": list(Connection.objects.only("id", "namespace", "name", "url").order_by("namespace", "name")[:PACKS_SHOWN]),
    }
    return show(request, "console/packs.html", "Packs", **context)


def _endpoint_row(endpoint: Endpoint, now: datetime) -> EndpointRow:
    kept = keeps_unverified(endpoint.unverified_policy, endpoint.unverified_until, now)
    url = public_base(endpoint.public_url) + ingress_path(endpoint.namespace, endpoint.slug)
    return EndpointRow(endpoint, url, _live_secrets(endpoint, now), kept)


def _live_secrets(endpoint: Endpoint, now: datetime) -> str:
    try:
        live = len(secrets.live(endpoint.secrets, now))
    except (secrets.SecretsUnreadable, secrets.NoEncryptionKey):
        return "unreadable: no key of HEADRACE_ENCRYPTION_KEYS opens it"
    return f"{live} live" if live else "none"


@page(rooms.WORKERS)
def workers(request: HttpRequest) -> HttpResponseBase:
    now = clock.now()
    alive = list(counts.live_workers(now)[:WORKERS_SHOWN])
    seen = Worker.objects.filter(seen_at__gte=now - GONE_SHOWN, seen_at__lt=now - timedelta(seconds=ALIVE_SECONDS))
    gone = list(seen.order_by("-seen_at", "id")[:WORKERS_SHOWN])
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
    ("packs/", packs, "packs"),
    ("workers/", workers, "workers"),
    ("audit/", audit, "audit"),
)
