"""Taking the demo away: its configuration, and everything that its endpoints have received and what became of it.

Two transactions, each under the namespace's lock: the endpoints are closed, then, once no web process knows them any more, all rows of
the namespace go. Nothing of another namespace is looked at.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterable
from typing import Any, Final

from django.db import models

from connectors import audit_log
from connectors.configuration.apply import extras
from connectors.configuration.change import ConfigurationRefused, NotFound, lock_namespace
from connectors.configuration.file import Configuration
from connectors.demo import FILE, NAMESPACE
from connectors.models import Connection, Endpoint, Namespace, Pack, Receipt, Record, Route, UnverifiedDelivery
from connectors.states import EndpointState
from connectors.timed_cache import KEPT_SECONDS
from projection.database.catalogue import chunks
from projection.database.transactions import run_unit
from projection.models import Destination, Event, LaneHold, WorkFailure, WorkItem

ROWS_A_STATEMENT: Final = 1000
SECTIONS: Final = {"pack": "packs", "route": "routes", "connection": "connections"}


def remove(*, actor: str) -> dict[str, int]:
    """Remove the demo; how many rows of each kind went. The namespace must hold nothing else.

    Raises NotFound where there is no demo, ConfigurationRefused naming what somebody else has put into its namespace.
    """
    if run_unit("close_demo", _close):
        time.sleep(KEPT_SECONDS)  # so long web processes may go on taking deliveries
    return run_unit("remove_demo", lambda: _remove(actor))


def _close() -> int:
    """Endpoints that were open until now."""
    if not Namespace.objects.filter(name=NAMESPACE).exists():
        raise NotFound("The demo is not loaded; there is nothing to remove.")
    lock_namespace(NAMESPACE)
    foreign = _foreign()
    if foreign:
        raise ConfigurationRefused(
            f"Namespace {NAMESPACE} contains more than the demo: {', '.join(foreign)}. Remove these first; their data would be deleted too."
        )
    return Endpoint.objects.filter(namespace=NAMESPACE, state=EndpointState.ENABLED).update(state=EndpointState.REMOVED, secrets="")


def _foreign() -> list[str]:
    """What is in the namespace and not in the demo's file."""
    table: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    slugs = {slug for section in table["packs"].values() for slug in section.get("endpoint", {})}
    named = {kind: set(table[section]) for kind, section in SECTIONS.items()} | {"endpoint": slugs}
    here = extras(Configuration(namespace=NAMESPACE))
    return [f"{extra.kind} {extra.name}" for extra in here if extra.name not in named[extra.kind]]


def _remove(actor: str) -> dict[str, int]:
    lock_namespace(NAMESPACE)
    here = {"namespace": NAMESPACE}
    endpoints = list(Endpoint.objects.filter(**here).values_list("id", flat=True))
    work = list(WorkItem.objects.filter(**here).values_list("id", flat=True))
    parked = [f"{NAMESPACE}/{name}" for name in Connection.objects.filter(**here).values_list("name", flat=True)]
    removed = {
        "receipts": _delete(Receipt, **here),
        "events": _delete(Event, **here),
        "work_items": _delete(WorkItem, **here),
        "records": _delete(Record, **here),
    }
    for ids in chunks(work, ROWS_A_STATEMENT):
        _delete(WorkFailure, work_item_id__in=ids)
    _delete(UnverifiedDelivery, endpoint_id__in=endpoints)
    _delete(Destination, name__in=parked)
    for model in (LaneHold, Route, Endpoint, Pack, Connection):
        _delete(model, **here)
    Namespace.objects.filter(name=NAMESPACE).delete()
    audit_log.record(actor, "demo.remove", NAMESPACE, "", count=sum(removed.values()), detail=removed)
    return removed


def _delete(model: type[models.Model], **which: str | Iterable[Any]) -> int:
    """By primary key, so that no row of another namespace is locked on the way."""
    ids = list(model._default_manager.filter(**which).values_list("id", flat=True))
    for part in chunks(ids, ROWS_A_STATEMENT):
        model._default_manager.filter(id__in=part).delete()
    return len(ids)
