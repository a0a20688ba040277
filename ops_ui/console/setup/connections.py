"""Connections: where flows post to, and which routes use them. Changed by `config apply`; secrets are counted, never shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpRequest, HttpResponseBase

from connectors import secrets
from connectors.models import Connection, Route
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.setup import export
from projection.database import clock

SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    connection: Connection
    secrets: str
    routes: tuple[tuple[int, str], ...]
    """(row, key) of the current routes that name it."""


@page(navigation.CONNECTIONS)
def listing(request: HttpRequest) -> HttpResponseBase:
    """Two queries of configuration size."""
    now = clock.now()
    users: dict[tuple[str, str], list[tuple[int, str]]] = {}
    current = Route.objects.filter(is_current=True, deleted_at=None).exclude(connection="").order_by("route_key", "id")
    for row_id, namespace, key, name in current.values_list("id", "namespace", "route_key", "connection")[:SHOWN]:
        users.setdefault((namespace, name), []).append((row_id, key))
    rows = [
        ConnectionRow(one, _live(one, now), tuple(users.get((one.namespace, one.name), ())))
        for one in Connection.objects.defer("settings").order_by("namespace", "name")[:SHOWN]
    ]
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("connections", exports.whole(rows), export.connections), wanted)
    return show(request, "console/setup/connections.html", "Connections", rows=rows)


def _live(connection: Connection, now: datetime) -> str:
    try:
        live = len(secrets.live(connection.secrets, now))
    except (secrets.SecretsUnreadable, secrets.NoEncryptionKey):
        return "unreadable: no key in HEADRACE_ENCRYPTION_KEYS can decrypt it"
    return f"{live} valid" if live else "none"


URLS: Final[Urls] = (("connections/", listing, "connections"),)
