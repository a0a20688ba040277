"""Two workers and a destination whose pause is over: one of them gets the item that is let through, also when both have read it free."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from projection.claiming.claim import ClaimedBatch, claim
from projection.database import clock
from projection.execution.attempts import failure
from projection.flows import Unavailable
from projection.limits import circuit_breaker
from projection.models import Destination, WorkItem
from projection.states import State
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def take() -> ClaimedBatch:
    return claim(100, owner=threading.current_thread().name, lease_seconds=60)


def opened(items: int) -> None:
    """The destination was parked, and its pause is over; `items` are due."""
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(items)])
    attempts = ByHand().claim(circuit_breaker.FAILURES)
    assert circuit_breaker.record([failure(attempt, Unavailable("503")) for attempt in attempts]) == {"test.record"}
    for attempt in attempts:
        report(attempt, State.RETRY, give_back=1)
    Destination.objects.update(parked_until=clock.now() - timedelta(seconds=1))


def test_who_waits_for_the_destination_finds_it_taken() -> None:
    with recording():
        opened(20)
        row = Destination.objects.get()
        with transaction.atomic():
            probes = circuit_breaker.lock_probes({row.id: row.name})
            rival = Rival(take)
            rival.waits()
            circuit_breaker.let_through(probes.values())
        assert rival.result().items == ()
    assert WorkItem.objects.filter(state="processing").count() == 0
    assert set(WorkItem.objects.values_list("attempts", flat=True)) == {0}


def test_many_claims_at_once_let_one_item_through_for_each_pause() -> None:
    barrier, taken = threading.Barrier(2), []

    def work() -> None:
        try:
            barrier.wait(30)
            taken.extend(take().items)
        finally:
            connection.close()

    with recording():
        opened(20)
        for _ in range(5):
            taken.clear()
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert len(taken) == 1
            assert Destination.objects.get().state == "half_open"
            Destination.objects.update(parked_until=clock.now() - timedelta(seconds=1))
