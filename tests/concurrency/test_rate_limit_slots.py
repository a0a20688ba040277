"""Two workers and one rate limit: no slot is given twice, none is lost."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from projection.claiming.claim import ClaimedBatch, claim
from projection.database import clock
from projection.facts import RateLimit
from projection.limits import rate_limits, route_limits
from projection.models import RateBucket, WorkItem
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival
from tests.support.workers_by_hand import at

pytestmark = pytest.mark.usefixtures("sound_database")


def take() -> ClaimedBatch:
    return claim(100, owner=threading.current_thread().name, lease_seconds=60)


def ready(count: int, rate: int) -> str:
    """Work of a limited route that this process knows already; the limit's key."""
    ingress = open_ingress()
    facts = ingress.route(mode="per_event", limit=RateLimit("api", rate, 1.0))
    ingress.admit(*[change(n) for n in range(count)])
    route_limits.learn([facts.id])
    route_limits.declare([facts.id])
    terms = route_limits.find(facts.id)
    assert terms is not None
    assert terms.limit_key is not None
    return terms.limit_key


def test_who_waits_for_the_limit_gets_the_slots_after_those_of_who_was_first() -> None:
    key = ready(10, 10)
    with recording():
        with transaction.atomic():
            bucket = rate_limits.lock([key])[key]
            rival = Rival(take)
            rival.waits()
            rate_limits.take({bucket: 3})
            ours = bucket.starts(3)
        theirs = sorted(one.starts_at for one in rival.result().items)
    assert len(theirs) >= 2
    assert theirs[0] - ours[-1] > 0.09, "a tenth of a second, as exactly as two clocks can be compared"


def test_many_claims_at_once_share_the_slots_exactly() -> None:
    """Time stands still while both claim, and passes between the rounds."""
    key = ready(600, 200)
    first = clock.now() + timedelta(seconds=0.2)
    workers, rounds = 2, 8
    RateBucket.objects.filter(limit_key=key).update(next_slot_at=first)
    barrier = threading.Barrier(workers)
    taken: list[int] = []

    def work() -> None:
        try:
            for number in range(rounds):
                barrier.wait(30)
                with at(first + timedelta(seconds=0.2 * number)):
                    taken.extend([one.item.id for one in take().items])
        finally:
            connection.close()

    with recording():
        threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(taken) == len(set(taken)) == WorkItem.objects.filter(state="processing").count()
    assert len(taken) > 300
    slots = (RateBucket.objects.get(limit_key=key).next_slot_at - first) / timedelta(microseconds=5250)
    assert len(taken) - 0.1 < slots < len(taken) + 5, "none twice, none lost but where a lock was awaited past the next slot"
