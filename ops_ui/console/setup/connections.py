"""Connections: where flows post to, and which routes use them. Created and changed by `config apply`, disabled and removed here too;
secrets are counted, never shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse

from connectors import secrets
from connectors.configuration import connections as configuration
from connectors.models import Connection, Route
from ops_ui.console.actions import action, actor_of, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.setup import configuring, export
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
        for one in Connection.objects.order_by("namespace", "name")[:SHOWN]
    ]
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("connections", exports.whole(rows), export.connections), wanted)
    may_change = configuring.may_change(request, "connectors.change_connection")
    context = {"rows": rows, "may_change": may_change, "locked": configuring.lock_sentence()}
    return show(request, "console/setup/connections.html", "Connections", **context)


def _live(connection: Connection, now: datetime) -> str:
    try:
        live = len(secrets.live(connection.secrets, now))
    except (secrets.SecretsUnreadable, secrets.NoEncryptionKey):
        return "unreadable: no key in HEADRACE_ENCRYPTION_KEYS can decrypt it"
    return f"{live} valid" if live else "none"


@action("connectors.change_connection")
def disable(request: HttpRequest, connection_id: int) -> HttpResponse:
    """Posts nothing any more; the work waits."""

    def change(row: Connection, reason: str) -> str:
        configuration.set_disabled(row.namespace, row.name, True, actor=actor_of(request), reason=reason)
        return f"Disabled {row.name}. Its work waits and uses no attempts."

    return _with_reason(request, connection_id, "Nothing was disabled", change)


@action("connectors.change_connection")
def enable(request: HttpRequest, connection_id: int) -> HttpResponse:
    def change(row: Connection, reason: str) -> str:
        configuration.set_disabled(row.namespace, row.name, False, actor=actor_of(request), reason=reason)
        return f"Enabled {row.name}. Its work starts again."

    return _with_reason(request, connection_id, "Nothing was enabled", change)


@action("connectors.change_connection")
def remove(request: HttpRequest, connection_id: int) -> HttpResponse:
    """Removes one that no route and no open work uses."""

    def change(row: Connection, reason: str) -> str:
        configuration.remove(row.namespace, row.name, actor=actor_of(request), reason=reason)
        return f"Removed {row.name}."

    return _with_reason(request, connection_id, "Nothing was removed", change)


def _with_reason(request: HttpRequest, connection_id: int, undone: str, change: Callable[[Connection, str], str]) -> HttpResponse:
    """A change that needs a reason; what it answers is the message."""
    row = get_object_or_404(Connection, id=connection_id)
    reason = reason_of(request, undone)
    done = configuring.attempt(request, undone, partial(change, row, reason)) if reason else None
    if done is not None:
        messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:connections"))


URLS: Final[Urls] = (
    ("connections/", listing, "connections"),
    ("connections/<int:connection_id>/disable/", disable, "disable_connection"),
    ("connections/<int:connection_id>/enable/", enable, "enable_connection"),
    ("connections/<int:connection_id>/remove/", remove, "remove_connection"),
)
