"""An endpoint's own limits over HTTP: 429 with Retry-After, for genuine deliveries only, and for this endpoint only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from django.db import connections

from connectors.ingress import limits
from connectors.models import Receipt
from tests.support.ingress import Ingress, answer, facts, open_endpoint

pytestmark = pytest.mark.usefixtures("database", "fresh")

BODY = b"{}"


@pytest.fixture
def fresh() -> Iterator[None]:
    limits.forget()
    yield
    limits.forget()


def refused(ingress: Ingress, body: bytes = BODY, headers: dict[str, str] | None = None) -> tuple[int, str, str | None]:
    response = ingress.post(body, headers)
    return response.status_code, answer(response).get("code", ""), response.headers.get("Retry-After")


def test_above_the_rate_it_is_429_and_says_when_to_come_again() -> None:
    ingress = open_endpoint(limits={"limit": [4, 3600]})
    assert [ingress.post(BODY).status_code for _ in range(2)] == [202, 202], "half of 4 for one of two processes"
    status, code, retry_after = refused(ingress)
    assert (status, code) == (429, "rate_limited")
    assert 1700 < int(retry_after or 0) <= 1800
    assert Receipt.objects.count() == 2
    assert open_endpoint(slug="other").post(BODY).status_code == 202


def test_a_stranger_uses_up_nothing() -> None:
    ingress = open_endpoint(limits={"limit": [2, 3600]})
    assert {ingress.post(BODY, {"X-Signature": "00"}).status_code for _ in range(5)} == {401}
    assert ingress.post(BODY).status_code == 202
    assert ingress.post(BODY).status_code == 429


def test_a_used_up_endpoint_reads_no_body() -> None:
    ingress = open_endpoint(limits={"limit": [2, 3600]})
    ingress.post(BODY)
    with mock.patch("connectors.ingress.view.read_body") as read:
        assert ingress.post(BODY).status_code == 429
    read.assert_not_called()


def test_more_at_once_than_allowed_are_429_and_places_come_free() -> None:
    ingress = open_endpoint(limits={"concurrency": 4})
    known = facts(ingress)
    inside, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_: object, **__: object) -> int:
        inside.release()
        assert go_on.wait(20)
        return 1

    def post() -> int:
        try:
            return ingress.post(BODY).status_code
        finally:
            connections.close_all()

    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=slow), ThreadPoolExecutor(2) as pool:
        running = [pool.submit(post) for _ in range(2)]
        assert inside.acquire(timeout=20)
        assert inside.acquire(timeout=20)
        assert refused(ingress) == (429, "too_many_at_once", "1")
        go_on.set()
        assert [one.result() for one in running] == [202, 202]
    assert limits.take_place(known)
    limits.give_place_back(known)
    assert ingress.post(BODY).status_code == 202


def test_a_request_that_fails_gives_its_place_back() -> None:
    ingress = open_endpoint(limits={"concurrency": 1})
    with mock.patch("connectors.ingress.view.receive", side_effect=RuntimeError("a bug")):
        assert [ingress.post(BODY).status_code for _ in range(3)] == [503] * 3
    assert ingress.post(BODY).status_code == 202
