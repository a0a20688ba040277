"""Stored receipts at their worst: each ends routed, rejected or in quarantine, and later ones pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from django.db import OperationalError, connection

from connectors.models import Receipt
from connectors.registry import installed_packs
from connectors.routing import router
from connectors.routing.reading import read_receipt
from projection.masked_errors import UNTOLD
from projection.models import Event
from tests.support.deliveries import change, changes, open_ingress

pytestmark = pytest.mark.usefixtures("sound_database")


def found() -> list[tuple[str, int | None, int | None]]:
    return list(Receipt.objects.order_by("id").values_list("state", "event_count", "rejected_count"))


def test_a_body_of_millions_of_items_is_rejected_and_the_next_one_passes() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.send_body(b'{"events":[' + b"0," * 400_000 + b"0]}")
    ingress.admit(change(5))
    assert found() == [("rejected", 0, None), ("routed", 1, 0)]


def test_as_many_bad_items_as_are_read_are_counted_and_the_good_one_among_them_is_admitted() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*[{"id": ["\U0001f600" * 8]}] * 5000, change(5), *[{"id": ["\U0001f600" * 8]}] * 5000)
    assert found() == [("partial", 1, 10_000)]
    assert len(Receipt.objects.get().verdicts or "") < 100_000


@pytest.mark.parametrize("levels", [200, 400, 20_000])
def test_an_item_that_is_nested_too_deeply_is_rejected_and_its_siblings_are_admitted(levels: int) -> None:
    """At the same depth on every interpreter, however deep it reads itself."""
    ingress = open_ingress()
    ingress.route()
    deep = json.dumps(change(6) | {"note": "DEEP"}).replace('"DEEP"', "[" * levels + "]" * levels)
    ingress.send_body(f'{{"events":[{json.dumps(change(5))},{deep},{json.dumps(change(7))}]}}'.encode())
    router.drain_receipts()
    assert found() == [("partial", 2, 1)]
    assert "the item is nested more than 200 levels deep" in (Receipt.objects.get().verdicts or "")
    assert bytes(Receipt.objects.get().body).count(b"[") == levels + 1, "its bytes are kept"


def test_an_item_of_the_greatest_depth_goes_everywhere() -> None:
    ingress = open_ingress()
    ingress.route(flow="record_table")
    ingress.admit(change(5, note=json.loads("[" * 198 + "]" * 198)))
    assert found() == [("routed", 1, 0)]


def test_a_batch_takes_no_more_events_than_a_transaction_should_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "BATCH_EVENTS", 5)
    ingress = open_ingress()
    ingress.route()
    for contact in range(4):
        ingress.send(*changes(contact, 3))
    assert [router.route_batch("default").receipts for _ in range(3)] == [2, 2, 0]
    assert list(Event.objects.order_by("enqueue_ordinal").values_list("source_id", flat=True)) == [*"000111222333"]


@pytest.mark.parametrize("masks", [("$.email",), ("$.customer.email",)])
def test_why_an_item_or_a_body_is_rejected_is_kept_without_masked_fields(
    masks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ingress = open_ingress()
    ingress.route(masks=masks)
    email = {"email": "ada@example.com", "customer": {"email": "ada@example.com"}}
    other = installed_packs.of(ingress.pack.id)

    def refuse(*_: object) -> NoReturn:
        raise ValueError("nobody is ada@example.com, says Ada")

    with monkeypatch.context() as patch:
        patch.setattr(other, "read", refuse)
        ingress.admit(change(5, **email))
        patch.setattr(other, "split_request", refuse)
        ingress.admit(change(6, **email))
        ingress.send_body(b"email=ada@example.com")
        router.route_batch("default")
    ingress.send_body(b"email=ada@example.com")
    router.route_batch("default")
    kept = [f"{row.last_error} {row.verdicts}" for row in Receipt.objects.order_by("id")]
    assert "ada@" not in str(kept)
    assert ["says Ada" in one for one in kept] == [True, True, False, False]
    assert UNTOLD in kept[2]
    assert "char 0" in kept[3]


class Fault:
    """A server that drops the connection whenever the statement of one receipt comes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, applies: Callable[[int], bool]) -> None:
        self.times = 0
        self._applies = applies
        self._read = read_receipt
        monkeypatch.setattr(router, "read_receipt", self._reading)

    def _reading(self, receipt: Any, book: Any) -> Any:
        if self._applies(receipt.id):
            self.times += 1
            connection.connection.close()
            raise OperationalError(2006, "Server has gone away")
        return self._read(receipt, book)


def test_a_receipt_over_which_the_server_drops_the_connection_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement above max_allowed_packet ends that way."""
    ingress = open_ingress()
    ingress.route()
    bad = ingress.send(change(1)).receipt_id
    ingress.send(change(2))
    fault = Fault(monkeypatch, lambda receipt: receipt == bad)
    for _ in range(router.QUARANTINE_AFTER):
        Receipt.objects.update(next_attempt_at=None)
        router.drain_receipts("default")
    assert [state for state, _, _ in found()] == ["quarantined", "routed"]
    assert fault.times > router.QUARANTINE_AFTER


def test_a_connection_lost_twice_puts_no_receipt_off(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    for contact in (1, 2):
        ingress.send(change(contact))
    lost = iter([True, True])
    Fault(monkeypatch, lambda _: next(lost, False))
    router.drain_receipts("default")
    assert found() == [("routed", 1, 0), ("routed", 1, 0)]
    assert list(Event.objects.order_by("enqueue_ordinal").values_list("source_id", flat=True)) == ["1", "2"]
