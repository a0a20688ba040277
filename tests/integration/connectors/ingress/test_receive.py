"""Receive, one test per outcome: what is stored, and what is answered (docs/protocol.md#receive)."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from unittest import mock

import pytest
from django.db import OperationalError, connection, transaction

from connectors.delivery import Headers, IngressRequest, Outcome
from connectors.ingress import insert, verify
from connectors.ingress.receive import receive
from connectors.models import Receipt, UnverifiedDelivery
from projection.database import clock
from tests.support import signing
from tests.support.ingress import Ingress, facts, open_endpoint

pytestmark = pytest.mark.usefixtures("database")

BY_ID = {"delivery_id": "id"}


def send(ingress: Ingress, body: bytes, headers: dict[str, str] | None = None) -> Outcome:
    signed = signing.generic(body, ingress.secret) if headers is None else headers
    return receive(facts(ingress), IngressRequest("POST", f"{ingress.url}?token=s3cr3t", Headers(signed), body))


def test_a_delivery_is_stored_with_its_exact_bytes() -> None:
    ingress = open_endpoint(settings=BY_ID)
    body = b'{ "id" : "evt_1",  "n": 1.10, "t": "\\u00e9", "raw": "\xc3\xa9" }\n'
    before = clock.now()
    outcome = send(ingress, body, signing.generic(body, ingress.secret) | {"Content-Type": "application/json", "Cookie": "s3cr3t"})
    (row,) = Receipt.objects.all()
    assert (outcome.code, outcome.status, outcome.receipt_id) == ("accepted", 202, row.id)
    assert bytes(row.body) == body
    assert row.body_sha256 == hashlib.sha256(body).hexdigest()
    assert (row.namespace, row.pack_id, row.pack_incarnation, row.endpoint_id) == (
        "default", ingress.pack.id, ingress.pack.incarnation, ingress.endpoint.id,
    )  # fmt: skip
    assert (row.state, row.attempts, row.idempotency_key, row.conflict_hash, row.method) == ("pending", 0, "evt_1", "", "POST")
    assert json.loads(row.headers) == {"content-type": "application/json"}
    assert row.url == ingress.url
    assert timedelta(0) <= row.received_at - before < timedelta(seconds=30)


def test_the_same_delivery_again_is_a_duplicate_of_the_first() -> None:
    ingress = open_endpoint(settings=BY_ID)
    first = send(ingress, b'{"id":"evt_1","v":1}')
    again = send(ingress, b'{"id":"evt_1","v":1}')
    assert (again.code, again.status, again.receipt_id) == ("duplicate", 200, first.receipt_id)
    assert Receipt.objects.count() == 1


def test_another_body_under_the_same_id_is_a_conflict_kept_once_per_body() -> None:
    ingress = open_endpoint(settings=BY_ID)
    first = send(ingress, b'{"id":"evt_1","v":1}')
    outcomes = [send(ingress, body) for body in (b'{"id":"evt_1","v":2}', b'{"id":"evt_1","v":2}', b'{"id":"evt_1","v":3}')]
    assert {(one.code, one.status, one.receipt_id) for one in outcomes} == {("conflict", 409, first.receipt_id)}
    assert sorted(Receipt.objects.values_list("state", flat=True)) == ["conflict", "conflict", "pending"]
    assert send(ingress, b'{"id":"evt_1","v":1}').code == "duplicate"


@pytest.mark.parametrize(
    "bodies", [(b'{"v":1}', b'{"v":2}', b'{"v":1}'), (b'{"id":"","v":1}', b'{"id":"   ","v":1}', b'{"id":null}')]
)
def test_without_an_id_every_delivery_is_a_new_receipt(bodies: tuple[bytes, ...]) -> None:
    """No id is no id, not an id that all such deliveries share."""
    ingress = open_endpoint(settings=BY_ID)
    outcomes = [send(ingress, body) for body in bodies]
    assert [one.code for one in outcomes] == ["accepted"] * 3
    assert len({one.receipt_id for one in outcomes}) == 3
    assert set(Receipt.objects.values_list("idempotency_hash", "idempotency_key")) == {(None, None)}


def test_a_blank_id_header_is_no_id() -> None:
    ingress = open_endpoint("github")
    for delivery in (None, "", "   "):
        headers = signing.github(b"{}", ingress.secret, delivery=delivery)
        assert send(ingress, b"{}", headers).code == "accepted"
    assert Receipt.objects.count() == 3


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("7615917337495251231", "7615917337495251232"),
        ("9007199254740993", "9007199254740992"),
        ('"🎩"', '"💥"'),
        ('"api_4qD"', '"api_4Qd"'),
        ('"a"', '"a "'),
        ('"é"', '"e"'),
    ],
)
def test_ids_that_a_collation_or_a_double_would_equate_are_two(one: str, two: str) -> None:
    ingress = open_endpoint(settings=BY_ID)
    outcomes = [send(ingress, f'{{"id":{id_}}}'.encode()) for id_ in (one, two, one)]
    assert [outcome.code for outcome in outcomes] == ["accepted", "accepted", "duplicate"]


def test_an_id_longer_than_its_column_and_one_with_a_lone_surrogate_are_kept_apart() -> None:
    ingress = open_endpoint(settings=BY_ID)
    for id_ in ("x" * 3000 + "1", "x" * 3000 + "2", "\\udc88", "\\ud800"):
        assert send(ingress, f'{{"id":"{id_}"}}'.encode()).code == "accepted"
    assert Receipt.objects.values("idempotency_hash").distinct().count() == 4
    assert len(set(Receipt.objects.values_list("idempotency_key", flat=True))) == 4  # events without an own id are known by it


def test_two_endpoints_do_not_share_ids() -> None:
    one, two = open_endpoint(settings=BY_ID), open_endpoint(slug="other", settings=BY_ID)
    assert [send(each, b'{"id":"evt_1"}').code for each in (one, two)] == ["accepted", "accepted"]


@pytest.mark.parametrize("body", [b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1e400}', b"", b"\xff\xfe", b"<xml/>", b"[" * 50_000])
def test_a_body_that_is_no_json_is_stored_as_it_is(body: bytes) -> None:
    """The router says what is wrong with it; the bytes are evidence."""
    ingress = open_endpoint(settings=BY_ID)
    assert send(ingress, body).code == "accepted"
    assert bytes(Receipt.objects.get().body) == body


def test_a_wrong_signature_stores_no_receipt() -> None:
    ingress = open_endpoint()
    outcome = send(ingress, b"{}", {"X-Signature": "00"})
    assert (outcome.code, outcome.status, outcome.receipt_id) == ("unverified", 401, None)
    assert Receipt.objects.count() == 0


def test_a_pack_whose_check_fails_verifies_nothing() -> None:
    ingress = open_endpoint(unverified_policy="refuse")
    known = facts(ingress)
    assert known.pack is not None
    with mock.patch.object(known.pack, "verify", side_effect=RuntimeError("s3cr3t")):
        outcome = receive(known, IngressRequest("POST", ingress.url, Headers(), b"{}"))
    assert outcome == verify.UNVERIFIED


def test_a_database_failure_is_503_and_stores_nothing() -> None:
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=OperationalError(2006, "gone away")):
        outcome = send(ingress, b"{}")
    assert (outcome.code, outcome.status) == ("database_unavailable", 503)
    assert outcome.retry_after
    assert send(ingress, b"{}").code == "accepted"


@pytest.mark.parametrize("code", [1205, 1213, 8002, 8022, 8028, 9007])
def test_a_conflict_of_the_database_is_tried_again(code: int) -> None:
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=[OperationalError(code, "conflict"), 77]) as tried:
        assert send(ingress, b"{}").receipt_id == 77
    assert tried.call_count == 2


def test_a_conflict_that_stays_is_told_after_four_tries() -> None:
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=OperationalError(1213, "deadlock")) as tried:
        assert send(ingress, b"{}").code == "database_unavailable"
    assert tried.call_count == 4


def test_after_a_conflict_that_took_long_nobody_waits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insert, "LONGEST_RETRY_SECONDS", 0.0)
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=OperationalError(1205, "lock wait")) as tried:
        assert send(ingress, b"{}").code == "database_unavailable"
    assert tried.call_count == 1


@pytest.mark.parametrize("code", [1118, 1153, 8025])
def test_a_body_that_the_server_never_takes_is_refused_for_good(code: int) -> None:
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=OperationalError(code, "too large")):
        outcome = send(ingress, b"{}")
    assert (outcome.code, outcome.status, outcome.retry_after) == ("database_too_small", 507, None)
    assert send(ingress, b"{}").code == "accepted"


def test_a_large_body_on_a_lost_connection_is_not_taken_for_one_that_is_too_large() -> None:
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=OperationalError(2006, "gone away")):
        assert send(ingress, b'"' + b"x" * 500_000 + b'"').code == "database_unavailable"


def test_receiving_inside_a_transaction_is_refused() -> None:
    ingress = open_endpoint()
    with transaction.atomic(), pytest.raises(RuntimeError, match="before the commit"):
        send(ingress, b"{}")


def test_receiving_is_one_insert_and_a_duplicate_one_read_more() -> None:
    ingress = open_endpoint(settings=BY_ID)
    known = facts(ingress)
    request = IngressRequest("POST", ingress.url, Headers(signing.generic(b'{"id":"a"}', ingress.secret)), b'{"id":"a"}')
    sent: list[str] = []

    def note(execute, sql, params, many, context):
        sent.append(sql.split()[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        receive(known, request)
        receive(known, request)
    assert sent == ["INSERT", "INSERT", "SELECT"]


def test_the_router_is_told_after_the_commit() -> None:
    ingress = open_endpoint()
    with mock.patch("projection.runtime.wake_up.notify", side_effect=lambda kind: told.append((kind, Receipt.objects.count()))):
        told: list[tuple[str, int]] = []
        send(ingress, b"{}")
    assert told == [("route", 1)]


def test_a_refused_delivery_is_not_kept_where_the_policy_says_so() -> None:
    for options in ({"unverified_policy": "refuse"}, {"keep_hours": -1}):
        ingress = open_endpoint(slug=f"s{len(options)}{options.get('keep_hours', 0)}", **options)
        send(ingress, b"{}", {"X-Signature": "00"})
    assert UnverifiedDelivery.objects.count() == 0
