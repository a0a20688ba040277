"""Two workers and one limit on how many run at once: no place is taken twice."""

from __future__ import annotations

import threading

import pytest

from projection.claiming.claim import ClaimedBatch, claim
from projection.facts import RateLimit
from projection.limits import route_limits
from projection.models import RunPlace, WorkItem
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import Gate, stopped_at
from tests.support.rivals import Rival, completion_open
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def take() -> ClaimedBatch:
    return claim(100, owner=threading.current_thread().name, lease_seconds=60)


def ready(count: int, concurrency: int) -> str:
    """Work of a limited route that this process knows already; the limit's key."""
    ingress = open_ingress()
    facts = ingress.route(mode="per_event", limit=RateLimit("api", concurrency=concurrency))
    ingress.admit(*[change(n) for n in range(count)])
    route_limits.learn([facts.id])
    route_limits.declare([facts.id])
    terms = route_limits.find(facts.id)
    assert terms is not None
    assert terms.limit_key is not None
    return terms.limit_key


def test_who_waits_for_the_limit_gets_the_places_that_are_left() -> None:
    ready(10, 6)
    with recording():
        with stopped_at(Gate("take_run_places", after=True), take) as first:
            second = Rival(take)
            second.waits()
        assert [len(one.result().items) for one in (first, second)] == [4, 2]


def test_an_end_that_has_not_committed_keeps_its_place() -> None:
    ready(10, 2)
    with recording():
        attempts = ByHand().claim()
        assert len(attempts) == 2
        with completion_open(attempts[:1]):
            assert Rival(take).ends_at_once().items == ()
        assert len(Rival(take).result().items) == 1


def test_many_claims_and_ends_at_once_never_take_a_place_twice() -> None:
    ready(60, 5)
    barrier, taken, most = threading.Barrier(3), [0], [0]
    lock = threading.Lock()

    def work() -> None:
        worker = ByHand(threading.current_thread().name)
        barrier.wait(30)
        while taken[0] < 60:
            attempts = worker.claim()
            with lock:
                taken[0] += len(attempts)
                most[0] = max(most[0], WorkItem.objects.filter(state="processing").count())
            for attempt in attempts:
                report(attempt)

    with recording():
        for rival in [Rival(work) for _ in range(3)]:
            rival.result(120)
    assert taken[0] == 60
    assert 1 < most[0] <= 5
    assert RunPlace.objects.count() == 5
