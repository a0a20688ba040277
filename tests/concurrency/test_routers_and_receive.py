"""Routers at the same time admit each receipt once; a delivery is stored at once whatever an admission holds."""

from __future__ import annotations

import pytest
from django.db import transaction

from connectors.configuration import packs
from connectors.models import Receipt
from connectors.routing.router import drain_receipts, route_batch
from projection.admission.admit import lock_admission
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from tests.support.deliveries import change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival, admission_open

pytestmark = pytest.mark.usefixtures("sound_database")


def test_a_second_router_of_the_batch_sees_nothing_pending() -> None:
    ingress = open_ingress()
    ingress.route()
    with admission_open(ingress, *changes(7, 3)):
        rival = Rival(lambda: route_batch("default"))
        rival.waits()
    report = rival.result()
    assert (report.seen, report.receipts, report.events, report.duplicates) == (1, 0, 0, 0)
    assert (Event.objects.count(), states(7)) == (3, ["pending"])


def test_a_second_router_takes_over_when_the_first_rolls_back() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(*changes(7, 3))
    with transaction.atomic():
        lock_admission("default", {ingress.pack.id: ingress.pack.incarnation})
        rival = Rival(lambda: route_batch("default"))
        rival.waits()
        transaction.set_rollback(True)
    assert rival.result().events == 3


def test_several_routers_share_the_receipts() -> None:
    ingress = open_ingress()
    ingress.route()
    for n in range(12):
        ingress.send(change(n % 3))
    rivals = [Rival(lambda: drain_receipts(batch=2)) for _ in range(3)]
    assert sum(rival.result().events for rival in rivals) == 12
    assert sorted(Event.objects.values_list("enqueue_ordinal", flat=True)) == list(range(1, 13))
    assert {receipt.state for receipt in Receipt.objects.all()} == {"routed"}


def test_a_delivery_is_stored_at_once_while_an_admission_holds_namespace_packs_and_receipts() -> None:
    ingress = open_ingress()
    ingress.route()
    with admission_open(ingress, change(7)):
        assert Rival(lambda: ingress.send(change(7))).ends_at_once().code == "accepted"
    assert drain_receipts().events == 1


def test_namespaces_never_wait_for_each_other() -> None:
    ingress, other = open_ingress(), open_ingress(in_namespace="other")
    ingress.route()
    other.route()
    with admission_open(ingress, change(7)):
        assert Rival(lambda: other.admit(change(7))).ends_at_once().events == 1


def test_an_upgrade_that_waits_for_an_admission_applies_to_the_next() -> None:
    ingress = open_ingress()
    ingress.route()
    with admission_open(ingress, change(7)):
        rival = Rival(lambda: packs.upgrade("default", "generic", actor="test"))
        rival.waits()
    new = rival.result().pack
    ingress.admit(change(7))
    assert list(Event.objects.order_by("id").values_list("pack_id", flat=True)) == [ingress.pack.id, new.id]


def test_an_admission_that_waits_for_an_upgrade_reads_the_routes_again() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(change(7))
    with transaction.atomic():
        new = packs.upgrade("default", "generic", actor="test").pack
        rival = Rival(drain_receipts)
        rival.waits()
    assert rival.result().events == 1
    assert Event.objects.get().pack_id == new.id


def test_two_operators_make_one_replay() -> None:
    ingress = open_ingress()
    ingress.route()
    with recording() as seen:
        seen.raises.append(DeadLetter("bad"))
        ingress.admit(change(7))
        drain_claims()
    work_id = generations(7)[0].work_id
    with transaction.atomic():
        lock_admission("default", {ingress.pack.id: ingress.pack.incarnation})
        rivals = [Rival(lambda name=name: replay(work_id, actor=name, reason="fixed")) for name in ("ann", "bob")]
        for rival in rivals:
            rival.waits()
    results = [rival.result() for rival in rivals]
    assert sorted(type(result).__name__ for result in results) == ["Refused", "Replayed"]
    (refused,) = [result for result in results if isinstance(result, Refused)]
    (replayed,) = [result for result in results if isinstance(result, Replayed)]
    assert (refused.code, replayed.replay_work_id in refused.reason) == ("already_replayed", True)
    assert WorkItem.objects.count() == 2


def test_a_replay_waits_for_the_admission_and_is_refused_for_the_generation_it_made() -> None:
    ingress = open_ingress()
    ingress.route()
    with recording() as seen:
        seen.raises.append(DeadLetter("bad"))
        ingress.admit(change(7))
        drain_claims()
    work_id = generations(7)[0].work_id
    with admission_open(ingress, change(7)):
        rival = Rival(lambda: replay(work_id, actor="me", reason="fixed"))
        rival.waits()
    result = rival.result()
    assert isinstance(result, Refused)
    assert (result.code, generations(7)[1].work_id in result.reason) == ("active_generation", True)
