"""An erasure beside what arrives, is admitted, replayed or erased at the same moment: nothing of the person comes in by the gap."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction

from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.store import store_within
from connectors.models import AuditEntry, Receipt
from connectors.retention.erase import Erased, erase_source
from connectors.retention.erased_bodies import Source
from connectors.retention.erased_sources import find_source
from connectors.routing import router
from projection.admission import activation
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.models import Event, WorkItem
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from tests.support import factories
from tests.support.deliveries import SETTINGS, Ingress, change, forget_caches, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, Gate, stopped_at
from tests.support.rivals import Rival, admission_open

pytestmark = pytest.mark.usefixtures("sound_database")


def run(*, die: int = 0) -> None:
    with recording() as seen:
        seen.raises += [DeadLetter("bad")] * die
        drain_claims()


@pytest.fixture
def ingress() -> Ingress:
    made = open_ingress()
    made.route()
    made.admit(change(7, id="first", name="Lovelace"))
    run()
    return made


def erase() -> Erased:
    source = find_source("contact:7", "default")
    assert isinstance(source, Source)
    return erase_source(source, actor="me", reason="asked")


def body(**more: Any) -> bytes:
    return json.dumps({"events": [change(7, id="first", **more)]}).encode()


def whole() -> list[bytes]:
    """Bodies that are still there."""
    return [bytes(one) for one in Receipt.objects.filter(erasure_id=None).values_list("body", flat=True)]


def test_a_copy_that_is_admitted_while_the_erasure_stands_before_its_commit_loses_its_body(ingress: Ingress) -> None:
    with stopped_at(Gate("erase_events", after=True), erase) as erasing:
        ingress.send_body(body())
        routing = Rival(lambda: router.drain_receipts("default"))
        routing.waits()
    assert erasing.result().events == 1
    assert routing.result().duplicates == 1
    assert whole() == []


def test_a_copy_whose_admission_is_open_is_waited_for_and_found(ingress: Ingress) -> None:
    with stopped_at(Gate("lock_namespace"), erase) as erasing, admission_open(ingress, change(7, id="first", name="Lovelace")):
        pass
    assert erasing.result().receipts == 2
    assert whole() == []


def test_news_that_is_admitted_in_between_stops_it_and_is_executed(ingress: Ingress) -> None:
    with stopped_at(Gate("lock_namespace"), erase) as erasing:
        ingress.admit(change(7, name="Lovelace"))
    assert [one.code for one in erasing.result().refused] == ["nonterminal"]
    with recording() as seen:
        drain_claims()
    assert len(seen.inputs) == 1
    assert erase().events == 2
    assert whole() == []


def test_a_replay_that_begins_in_between_stops_it(ingress: Ingress) -> None:
    ingress.admit(change(7))
    run(die=1)
    dead = WorkItem.objects.get(state="dead")
    WorkItem.objects.filter(id=dead.id).update(discarded_at=dead.terminal_at)
    with stopped_at(Gate("lock_namespace"), erase) as erasing:
        WorkItem.objects.filter(id=dead.id).update(discarded_at=None)
        assert isinstance(replay(dead.work_id, actor="me", reason="again"), Replayed)
    assert [one.code for one in erasing.result().refused] == ["nonterminal"]
    run()
    assert not erase().refused


def test_two_erasures_at_once_do_it_once(ingress: Ingress) -> None:
    with stopped_at(Gate(COMMIT), erase) as first:
        second = Rival(erase)
    results = [first.result(), second.result()]
    assert sorted((one.events, one.receipts) for one in results) == [(0, 0), (1, 1)]
    assert not [one for result in results for one in result.refused]
    assert Event.objects.exclude(erasure_id__in=AuditEntry.objects.values("id")).count() == 0


@pytest.fixture
def keyed() -> Ingress:
    """A request of this pack is one event and has its delivery id; hers has been admitted."""
    forget_caches()
    activation.activate("test")
    pack = factories.install("generic", settings={name: value for name, value in SETTINGS.items() if name != "items"})
    factories.endpoint(pack, "main")
    made = Ingress(pack, "main")
    assert made.send_body(one(name="Lovelace")).code == "accepted"
    router.drain_receipts("default")
    return made


def one(**more: Any) -> bytes:
    return json.dumps(change(7, id="first", **more)).encode()


def test_another_body_under_an_erased_delivery_id_is_kept_as_a_tombstone(keyed: Ingress) -> None:
    assert keyed.send_body(one(name="A. L.")).code == "conflict"
    assert erase().receipts == 2
    for _ in range(2):
        assert keyed.send_body(one(name="A. Lovelace")).code == "conflict"
    assert Receipt.objects.count() == 4
    assert whole() == []


def test_another_body_of_one_who_looked_before_the_erasure_and_stores_after_it(keyed: Ingress) -> None:
    with stopped_at(Gate("read_first_receipt", after=True), lambda: keyed.send_body(one(name="A. Lovelace"))) as storing:
        assert erase().receipts == 1
    assert storing.result().code == "conflict"
    assert (Receipt.objects.count(), whole()) == (2, [])


def test_another_body_that_is_stored_but_not_committed_is_waited_for(keyed: Ingress) -> None:
    """As a drain of the spool does: several deliveries in one transaction."""
    facts = endpoint_facts.load(("default", "main"))
    assert facts is not None

    def drain() -> str:
        with transaction.atomic():
            return store_within(facts, IngressRequest("POST", "", Headers({}), one(name="A. Lovelace"))).code

    with stopped_at(Gate(COMMIT), drain) as draining:
        erasing = Rival(erase)
        erasing.waits()
    assert draining.result() == "conflict"
    assert (erasing.result().receipts, whole()) == (2, [])
