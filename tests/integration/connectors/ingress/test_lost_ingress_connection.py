"""The connection of the ingress is lost: a delivery with an identity goes by a fresh one, and never becomes two receipts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError, connections

from connectors.delivery import Headers, IngressRequest, Outcome
from connectors.ingress import insert
from connectors.ingress.outage import INGRESS
from connectors.ingress.receive import receive
from connectors.models import Receipt
from tests.support import signing
from tests.support.ingress import Ingress, facts, open_endpoint

pytestmark = pytest.mark.usefixtures("database")

BODY = b'{"id":"evt_1","v":1}'
WITH_IDENTITY = {"delivery_id": "id"}


def send(ingress: Ingress) -> Outcome:
    """As a request of the web server: on the ingress' connection, which has not been asked since the last one."""
    connections[INGRESS].close_if_unusable_or_obsolete()
    headers = Headers(signing.generic(BODY, ingress.secret))
    return receive(facts(ingress), IngressRequest("POST", ingress.url, headers, BODY), using=INGRESS)


def session() -> int:
    """The server's number of the ingress' connection, read without a question whether it works."""
    with connections[INGRESS].cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        return int(cursor.fetchone()[0])


def kill(number: int) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(f"KILL {number}")


def questions(work: Callable[[], Any]) -> int:
    """How often Django asked the database whether the connection works."""
    ping = type(connections[INGRESS]).is_usable
    with mock.patch.object(type(connections[INGRESS]), "is_usable", autospec=True, side_effect=ping) as asked:
        work()
    return int(asked.call_count)


@pytest.mark.parametrize("settings", [WITH_IDENTITY, {}], ids=["with identity", "without"])
def test_a_connection_that_was_killed_while_idle_costs_nobody_a_delivery(settings: dict[str, str]) -> None:
    ingress = open_endpoint(settings=settings)
    before = session()
    kill(before)
    assert send(ingress).code == "accepted"
    assert session() != before
    assert Receipt.objects.count() == 1


def test_only_a_delivery_without_identity_asks_first() -> None:
    with_identity, without = open_endpoint(slug="with", settings=WITH_IDENTITY), open_endpoint(slug="without")
    session()
    assert questions(lambda: send(with_identity)) == 0
    assert questions(lambda: send(without)) == 1


def lost_answer() -> Callable[..., Any]:
    """An INSERT whose answer is lost on its way: it is committed, and nobody is told."""
    real = type(Receipt.objects).insert_receipt
    calls = []

    def insert(self: Any, draft: Any, *more: Any) -> int | None:
        found = real(self, draft, *more)
        calls.append(found)
        if len(calls) == 1:
            raise OperationalError(2013, "Lost connection to server during query")
        return found

    return insert


def test_an_insert_whose_answer_was_lost_is_known_by_its_identity() -> None:
    ingress = open_endpoint(settings=WITH_IDENTITY)
    with mock.patch.object(type(Receipt.objects), "insert_receipt", lost_answer()):
        outcome = send(ingress)
    assert (outcome.code, outcome.receipt_id) == ("duplicate", Receipt.objects.get().id)


def test_without_an_identity_nothing_is_sent_twice() -> None:
    ingress = open_endpoint()
    with mock.patch.object(type(Receipt.objects), "insert_receipt", lost_answer()):
        assert send(ingress).code == "database_unavailable"
    assert Receipt.objects.count() == 1


def test_a_connection_that_is_lost_again_and_again_is_told() -> None:
    ingress = open_endpoint(settings=WITH_IDENTITY)
    gone = OperationalError(2006, "Server has gone away")
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=gone) as tried:
        assert send(ingress).code == "database_unavailable"
    assert tried.call_count == 2


def test_who_has_waited_long_does_not_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insert, "LONGEST_RETRY_SECONDS", 0.0)
    ingress = open_endpoint(settings=WITH_IDENTITY)
    silent = OperationalError(2013, "Lost connection to server during query")
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=silent) as tried:
        assert send(ingress).code == "database_unavailable"
    assert tried.call_count == 1
