"""The demo's samples through router and worker: what a new user sees in the console."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import connection
from django.urls import resolve

from connectors import demo
from connectors.demo import removal
from connectors.flows import connections
from connectors.ingress import endpoint_facts
from connectors.models import AuditEntry, Connection, Endpoint, Pack, Receipt, Record, Route
from connectors.registry import installed_packs
from connectors.routing.router import drain_receipts
from projection.admission import activation
from projection.execution.worker import drain_claims
from projection.integrity.invariants import audit
from projection.models import Destination, Event, WorkFailure, WorkItem
from projection.replay import replay
from tests.support import factories
from tests.support.rows import PAGES, event_row, work_row


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are asserted, not logged."""


def _application(environ, start_response):
    """The demo's two pages, without the console around them."""
    request = WSGIRequest(environ)
    response = resolve(request.path).func(request)
    start_response(f"{response.status_code} X", list(response.items()))
    connection.close()
    return [response.content]


@pytest.fixture
def service(database, settings) -> Iterator[str]:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    for cache in (connections.of, endpoint_facts.find, installed_packs.of):
        cache.forget()
    with make_server("127.0.0.1", 0, _application, handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            activation.forget()


def run_everything() -> None:
    activation.activate("test")
    drain_receipts()
    with connection.cursor() as cursor:  # what the settling time would do by itself, 5 s later
        cursor.execute("UPDATE `_System_ConnectorWorkItem` SET RunAfter = UTC_TIMESTAMP(6)")
    drain_claims()


def record(source_type: str, source_id: str) -> tuple[Record, dict[str, object]]:
    row = Record.objects.get(source_type=source_type, source_id=source_id)
    return row, {name: json.loads(row.properties)[name]["value"] for name in json.loads(row.properties)}


def test_the_samples_become_live_records_forwards_and_dead_letters(service):
    demo.load(service, actor="test")
    run_everything()
    states = Counter(WorkItem.objects.values_list("companion_flow", "state"))
    assert states == {
        ("record_table", "processed"): 15,
        ("http_forward", "processed"): 15,
        ("http_forward", "dead"): 3,
        ("log", "processed"): 3,
    }
    row, properties = record("contact", "90071992547400")
    assert (properties["firstname"], properties["lastname"], properties["lifecyclestage"]) == (
        "Ada",
        "Winter",
        "salesqualifiedlead",
    )
    assert record("deal", "62000771")[1]["amount"] == "12345678901234567.89"
    assert record("contact", "90071992547587")[0].deleted
    assert not row.deleted


def test_duplicates_and_an_unreadable_item_are_told_on_their_receipts(service):
    demo.load(service, actor="test")
    run_everything()
    counts = Receipt.objects.values_list("duplicate_count", "rejected_count")
    assert sorted(count for count in counts if count != (0, 0)) == [(0, 1), (4, 0)]
    assert Event.objects.count() == 83


def test_dead_letters_replay_once_their_receiver_is_open(service):
    demo.load(service, actor="test", orders=10)
    run_everything()
    dead = list(WorkItem.objects.filter(state="dead").order_by("id").values_list("work_id", flat=True))
    assert len(dead) == 13  # three samples, ten orders
    demo.load(service, actor="test", receiver="open")
    connections.of.forget()
    replays = [replay.replay(work_id, actor="test", reason="the receiver is open again").replay_work_id for work_id in dead]
    drain_claims()
    assert set(WorkItem.objects.filter(work_id__in=replays).values_list("state", flat=True)) == {"processed"}


def test_the_demo_is_removed_with_all_that_became_of_it_and_nothing_else(service, monkeypatch):
    monkeypatch.setattr(removal, "KEPT_SECONDS", 0.0)
    demo.load(service, actor="test")
    run_everything()
    factories.install("github")
    event = event_row(PAGES)
    item = work_row(event, "dead")
    counts = removal.remove(actor="ann")
    assert counts == {"receipts": 36, "events": 83, "work_items": 36, "records": 15}
    assert [row.id for row in WorkItem.objects.all()] == [item.id]
    assert [row.id for row in Event.objects.all()] == [event.id]
    for model in (Receipt, Record, WorkFailure, Destination, Endpoint, Connection, Route):
        assert not model.objects.exists(), model
    assert [row.namespace for row in Pack.objects.all()] == ["default"]
    entry = AuditEntry.objects.get(action="demo.remove")
    assert (entry.actor, entry.target, entry.count) == ("ann", "demo", sum(counts.values()))
    item.delete()
    event.delete()
    assert audit().ok
    assert demo.load(service, actor="test").posted["accepted"] == 36
