"""A fact that is admitted after younger ones of its record never moves the record backwards, whichever way it came late."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from connectors.configuration import packs
from connectors.delivery import Headers, IngressRequest
from connectors.flows.record_fold import properties_of
from connectors.ingress import endpoint_facts
from connectors.ingress.store import store_within
from connectors.models import Receipt, Record
from connectors.operations import receipts, verbs
from connectors.routing.router import drain_receipts
from connectors.routing.sweep import sweep
from projection.execution.worker import drain_claims
from tests.support.deliveries import SETTINGS, Ingress, change, open_ingress

pytestmark = pytest.mark.usefixtures("sound_database")


@pytest.fixture
def ingress() -> Ingress:
    return open_ingress()


def route(ingress: Ingress) -> None:
    ingress.route(flow="record_table")


def record() -> Record:
    drain_claims()
    return Record.objects.get()


def value(name: str) -> str:
    return properties_of(record().properties)[name].text


def test_an_event_that_repair_routes_later_replaces_nothing_younger(ingress: Ingress) -> None:
    ingress.admit(change(7, seq=1, only="first"))
    route(ingress)
    ingress.admit(change(7, seq=2))
    assert value("seq") == "2"
    planned = sweep(dry_run=True)
    assert (planned.copies, planned.late) == (1, 1)
    done = sweep()
    assert (done.copies, done.late) == (1, 1)
    assert (value("seq"), value("only")) == ("2", '"first"')
    assert (record().late_count, record().event_count) == (1, 2)


def test_a_quarantined_receipt_that_is_routed_again_replaces_nothing_younger(ingress: Ingress) -> None:
    route(ingress)
    ingress.send(change(7, seq=1))
    Receipt.objects.update(state="quarantined")
    ingress.admit(change(7, seq=2))
    assert value("seq") == "2"
    assert verbs.reroute(Receipt.objects.earliest("id").id, actor="me", reason="fixed") is None
    drain_receipts()
    assert (value("seq"), record().late_count) == ("2", 1)


def test_a_delivery_that_reverify_accepts_later_keeps_its_time_of_arrival(ingress: Ingress) -> None:
    route(ingress)
    ingress.admit(change(7, seq=3))
    assert value("seq") == "3"
    facts = endpoint_facts.load((ingress.pack.namespace, ingress.slug))
    assert facts is not None
    body = json.dumps({"events": [change(7, seq=2)]}).encode()
    earlier = Receipt.objects.get().received_at - timedelta(minutes=5)
    store_within(facts, IngressRequest("POST", "", Headers({}), body), earlier)
    assert Receipt.objects.latest("id").received_at == earlier
    drain_receipts()
    assert (value("seq"), record().late_count) == ("3", 1)


def test_an_item_that_is_read_again_replaces_nothing_younger(ingress: Ingress) -> None:
    route(ingress)
    packs.configure(ingress.pack.namespace, ingress.pack.name, {**SETTINGS, "kind": "typ"}, actor="test")
    ingress.admit(change(7, seq=1))
    ingress.admit(change(7, seq=2, typ="changed"))
    assert value("seq") == "2"
    packs.configure(ingress.pack.namespace, ingress.pack.name, SETTINGS, actor="test")
    receipts.reread([Receipt.objects.earliest("id").id], actor="me", reason="fixed")
    drain_receipts()
    assert (value("seq"), record().late_count) == ("2", 1)


def test_facts_in_the_order_of_receipt_are_none_of_them_late(ingress: Ingress) -> None:
    route(ingress)
    for number in range(3):
        ingress.admit(change(7, seq=number), change(7, seq=number + 10))
        drain_claims()
    assert (value("seq"), record().late_count) == ("12", 0)
