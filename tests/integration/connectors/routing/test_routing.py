"""The router: a batch is admitted whole or not at all, and a receipt that cannot be admitted never stops the others."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from connectors.configuration import packs
from connectors.configuration.live_packs import live_pack
from connectors.models import AuditEntry, Receipt
from connectors.operations import verbs
from connectors.routing import reading, router
from connectors.routing.router import QUARANTINE_AFTER, drain_receipts, route_batch
from projection.admission.admit import StaleIncarnation, lock_admission
from projection.database import clock
from projection.database.transactions import run_unit
from projection.models import Event, WorkItem
from tests.support import commands, factories
from tests.support.deliveries import change, changes, open_ingress, states

pytestmark = pytest.mark.usefixtures("sound_database")


def receipt_states() -> list[str]:
    return [receipt.state for receipt in Receipt.objects.order_by("id")]


def come_due() -> None:
    """The back-off of deferred receipts is over."""
    Receipt.objects.filter(state="pending").update(next_attempt_at=clock.now() - timedelta(seconds=1))


def test_one_unreadable_item_keeps_its_siblings_and_is_named_on_the_receipt() -> None:
    ingress = open_ingress()
    ingress.route()
    without_id = {name: value for name, value in change(9).items() if name != "contact"}
    report = ingress.admit(change(7), without_id, change(8))
    assert (report.receipts, report.events, report.rejected_items) == (1, 2, 1)
    receipt = Receipt.objects.get()
    assert (receipt.state, receipt.item_count, receipt.event_count, receipt.rejected_count) == ("partial", 3, 2, 1)
    (verdict,) = json.loads(receipt.verdicts)
    assert (verdict["item"], verdict["code"]) == (1, "unreadable")
    assert "has no record id" in verdict["reason"]
    assert list(Event.objects.order_by("id").values_list("receipt_item", flat=True)) == [0, 2]


@pytest.mark.parametrize("body", [b"", b"no json", b'{"events": 7}', b"\xff\xfe\x00", b'{"events":[{"n":NaN}]}'])
def test_an_unreadable_body_is_rejected_with_its_bytes_kept(body: bytes) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send_body(body)
    ingress.send(change(7))
    report = drain_receipts()
    assert (report.receipts, report.events, report.rejected_receipts) == (2, 1, 1)
    rejected = Receipt.objects.order_by("id")[0]
    assert (rejected.state, bytes(rejected.body)) == ("rejected", body)
    assert rejected.last_error
    assert rejected.routed_at
    assert not drain_receipts().seen


def test_a_receipt_that_fails_alone_is_deferred_then_quarantined_while_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(change(7))
    ingress.send(change(666))
    ingress.send(change(8))
    _fail_on(monkeypatch, "666")
    report = drain_receipts()
    assert (report.receipts, report.events, report.deferred) == (2, 2, 1)
    assert receipt_states() == ["routed", "pending", "routed"]
    bad = Receipt.objects.get(state="pending")
    assert (bad.attempts, bad.last_error) == (1, "RuntimeError: cannot be admitted")
    assert bad.next_attempt_at > clock.now()
    assert not drain_receipts().seen, "its back-off is respected"
    for attempt in range(2, QUARANTINE_AFTER + 1):
        come_due()
        ingress.send(change(9))
        report = drain_receipts()
        assert report.events == 1
        assert (report.deferred, report.quarantined) == ((0, 1) if attempt == QUARANTINE_AFTER else (1, 0))
    assert receipt_states()[1] == "quarantined"
    come_due()
    assert not drain_receipts().seen
    assert not WorkItem.objects.filter(source_lane="contact:666").exists()


def test_a_quarantined_receipt_is_routed_again_when_an_operator_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(change(666))
    Receipt.objects.update(state="quarantined", attempts=5)
    receipt = Receipt.objects.get()
    assert verbs.reroute(receipt.id, actor="me", reason="fixed") is None
    assert verbs.reroute(receipt.id, actor="me", reason="fixed") is not None
    assert drain_receipts().events == 1
    assert receipt_states() == ["routed"]
    assert verbs.reroute(receipt.id, actor="me", reason="again") is not None


def test_a_batch_that_fails_leaves_nothing_behind_and_its_ordinals_are_used_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(*changes(7, 3))
    with monkeypatch.context() as patched:
        _fail_on(patched, "7")
        drain_receipts()
    assert (Event.objects.count(), WorkItem.objects.count()) == (0, 0)
    come_due()
    assert drain_receipts().events == 3
    assert list(Event.objects.values_list("enqueue_ordinal", flat=True)) == [1, 2, 3]


def _fail_on(monkeypatch: pytest.MonkeyPatch, source_id: str) -> None:
    """Admissions that hold an event of the source fail after everything was written."""
    admit = router.admit

    def fail(lock: Any, events: Any) -> Any:
        admitted = admit(lock, events)
        if any(event.source_id == source_id for event in events):
            raise RuntimeError("cannot be admitted")
        return admitted

    monkeypatch.setattr(router, "admit", fail)


def test_a_pack_upgraded_after_its_routes_were_read_is_noticed_and_the_routes_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(change(7))
    upgrades = iter([True])
    read_receipt = router.read_receipt

    def upgrade_meanwhile(*args: Any) -> reading.Reading:
        if next(upgrades, False):
            packs.upgrade("default", "generic", actor="test")
        return read_receipt(*args)

    monkeypatch.setattr(router, "read_receipt", upgrade_meanwhile)
    assert drain_receipts().events == 1
    event = Event.objects.get()
    current = live_pack("default", "generic")
    assert current is not None
    assert (event.pack_id, event.pack_incarnation, event.route_version) == (current.id, current.incarnation, 2)


def test_another_incarnation_of_a_locked_pack_is_stale() -> None:
    ingress = open_ingress()
    with pytest.raises(StaleIncarnation):
        run_unit("test", lambda: lock_admission("default", {ingress.pack.id: "another"}))
    with pytest.raises(StaleIncarnation):
        run_unit("test", lambda: lock_admission("default", {ingress.pack.id + 1: "gone"}))


def test_receipts_of_a_replaced_incarnation_are_routed_by_its_successor() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(change(7))
    upgraded = ingress.upgrade()
    drain_receipts()
    assert Event.objects.get().pack_id == upgraded.pack.id


def test_receipts_of_a_disabled_pack_are_still_routed() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(change(7))
    packs.disable("default", "generic", actor="test")
    assert drain_receipts().events == 1


def test_a_receipt_that_another_router_was_faster_with_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send(*changes(7, 2))
    rivals = iter([True])
    load = router.route_table.load

    def route_meanwhile(namespace: str) -> Any:
        if next(rivals, False):
            assert route_batch(namespace).events == 2
        return load(namespace)

    monkeypatch.setattr(router.route_table, "load", route_meanwhile)
    report = route_batch("default")
    assert (report.seen, report.receipts, report.events, report.duplicates) == (1, 0, 0, 0)
    assert Event.objects.count() == 2


def test_draining_goes_on_after_a_batch_that_another_router_took(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    for _ in range(4):
        ingress.send(change(7))
    rivals = iter([True])
    load = router.route_table.load

    def route_meanwhile(namespace: str) -> Any:
        if next(rivals, False):
            route_batch(namespace, 2)
        return load(namespace)

    monkeypatch.setattr(router.route_table, "load", route_meanwhile)
    drain_receipts(batch=2)
    assert set(receipt_states()) == {"routed"}


def test_receipts_are_taken_in_the_order_of_their_arrival_whatever_their_ids() -> None:
    ingress = open_ingress()
    ingress.route()
    for n in (1, 2, 3):
        ingress.send(change(n))
    late, early = Receipt.objects.order_by("id")[0], Receipt.objects.order_by("-id")[0]
    Receipt.objects.filter(id=early.id).update(received_at=late.received_at - timedelta(seconds=1))
    drain_receipts()
    assert list(Event.objects.order_by("enqueue_ordinal").values_list("source_id", flat=True)) == ["3", "1", "2"]


def test_a_batch_holds_no_more_bodies_than_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    monkeypatch.setattr(router, "BATCH_BYTES", 1000)
    for size in (600, 300, 300, 5000, 10):
        ingress.send(change(7, padding="x" * size))
    sizes = [route_batch("default").receipts for _ in range(5)]
    assert sizes[0] == 1
    assert sum(sizes) == 5
    assert Receipt.objects.filter(state="routed").count() == 5


def test_the_bound_is_32_mib() -> None:
    assert router.BATCH_BYTES == 32 * 2**20


@override_settings(HEADRACE_ROUTER_BATCH=2)
def test_a_batch_holds_no_more_receipts_than_the_setting() -> None:
    ingress = open_ingress()
    for _ in range(5):
        ingress.send(change(7))
    assert [route_batch("default").receipts for _ in range(4)] == [2, 2, 1, 0]


def test_namespaces_are_routed_apart() -> None:
    one, other = open_ingress(), open_ingress(in_namespace="other")
    one.route()
    other.route()
    one.send(change(7))
    other.send(change(7))
    assert drain_receipts("other").events == 1
    assert drain_receipts().events == 1
    assert states(7) == ["pending", "pending"]


def test_a_pack_that_this_process_does_not_have_keeps_its_receipts() -> None:
    factories.namespace()
    pack = factories.install("of-another-host")
    factories.receipt(pack, {"events": []})
    report = drain_receipts()
    assert report.deferred == 1
    assert "HEADRACE_APPS" in Receipt.objects.get().last_error


def test_the_command_gives_a_quarantined_receipt_back_once() -> None:
    ingress = open_ingress()
    ingress.send(change(7))
    Receipt.objects.update(state="quarantined", attempts=5, last_error="no room")
    receipt = Receipt.objects.get()
    assert commands.run("route_receipts", "--reroute", str(receipt.id), "--reason", "made room") == (
        0,
        {"rerouted": [receipt.id], "refused": []},
    )
    code, answer = commands.run("route_receipts", "--reroute", str(receipt.id))
    assert (code, answer["refused"][0]["code"]) == (1, "not_quarantined")
    assert ingress.admit(change(8)).receipts == 2
    assert AuditEntry.objects.get().action == "receipt.reroute"
