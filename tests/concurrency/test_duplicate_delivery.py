"""The same delivery at the same time is one receipt, one event and one piece of work."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction
from django.http import HttpResponse

from connectors.ingress import metrics
from connectors.ingress.outage import outage
from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection.models import Event, WorkItem
from tests.support import factories
from tests.support.ingress import Ingress, answer, open_endpoint

pytestmark = pytest.mark.usefixtures("database")

BODY = b'{"id":"c-7","v":1}'
COPIES = 8


@pytest.fixture
def ingress() -> Ingress:
    found = open_endpoint(settings={"delivery_id": "'evt_1'"})
    factories.route(found.pack)
    return found


def post_at_once(ingress: Ingress, *, isolation: str = "READ COMMITTED", bodies: list[bytes] | None = None) -> list[HttpResponse]:
    start = threading.Barrier(COPIES)

    def post(body: bytes) -> HttpResponse:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
            start.wait(timeout=30)
            return ingress.post(body)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(COPIES) as pool:
        return list(pool.map(post, bodies or [BODY] * COPIES))


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
def test_copies_that_arrive_together_are_one_receipt(ingress: Ingress, isolation: str) -> None:
    before = metrics.DUPLICATES.labels("generic")._value.get()
    answers = post_at_once(ingress, isolation=isolation)
    answers.append(ingress.post(BODY))
    assert sorted(one.status_code for one in answers) == [200] * COPIES + [202]
    assert {answer(one)["receipt"] for one in answers} == {str(Receipt.objects.get().id)}
    assert metrics.DUPLICATES.labels("generic")._value.get() - before == COPIES
    drain_receipts()
    assert (Event.objects.count(), WorkItem.objects.count()) == (1, 1)


def test_other_bodies_that_arrive_together_leave_one_standing(ingress: Ingress) -> None:
    bodies = [b'{"id":"c-7","v":%d}' % (number % 4) for number in range(COPIES)]
    answers = post_at_once(ingress, bodies=bodies)
    states = sorted(Receipt.objects.values_list("state", flat=True))
    assert states == ["conflict"] * 3 + ["pending"]
    assert sorted(one.status_code for one in answers) == [200, 202] + [409] * 6
    assert len({answer(one)["receipt"] for one in answers}) == 1


def test_a_delivery_whose_row_is_locked_holds_up_no_other() -> None:
    ingress = open_endpoint(settings={"delivery_id": "id"})
    assert ingress.post(BODY).status_code == 202
    locked, over = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Receipt.objects.all().delete()  # as the clean-up does, and not committed yet
                locked.set()
                assert over.wait(timeout=30)
                transaction.set_rollback(True)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        assert locked.wait(timeout=30)
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 2")
        try:
            waited = ingress.post(BODY)
            others = [ingress.post(b'{"id":"c-%d"}' % number) for number in range(100, 110)]
            again = ingress.post(BODY)
        finally:
            over.set()
            connections.close_all()
        holding.result(timeout=30)
    assert (waited.status_code, answer(waited)["code"]) == (503, "database_unavailable")
    assert {one.status_code for one in others} == {202}
    assert again.status_code == 503, "it did not wait for its lock again"
    outage.forget()
    assert ingress.post(BODY).status_code == 200
