"""Two workers and one rate limit: no slot is given twice, none is lost."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from django.db import connection, transaction

from projection import rate_limits, route_terms
from projection.claim import ClaimedBatch, claim
from projection.facts import RateLimit
from projection.models import RateBucket, WorkItem
from tests.deliveries import change, open_ingress
from tests.flows_of_tests import recording
from tests.rivals import Rival

pytestmark = pytest.mark.usefixtures("sound_database")

SPACING = 1.05
"""Seconds between two starts of one a second: stretched by 5 %."""


def take() -> ClaimedBatch:
    return claim(100, owner=threading.current_thread().name, lease_seconds=60)


def ready(count: int, rate: int) -> str:
    """Work of a limited route that this process knows already; the limit's key."""
    ingress = open_ingress()
    facts = ingress.route(mode="per_event", limit=RateLimit("api", rate, 1.0))
    ingress.admit(*[change(n) for n in range(count)])
    route_terms.learn([facts.id])
    terms = route_terms.find(facts.id)
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
    assert theirs[0] - ours[-1] == pytest.approx(SPACING / 10, abs=0.001)


def test_many_claims_at_once_share_the_slots_exactly() -> None:
    key = ready(600, 200)
    workers, rounds = 2, 25
    barrier = threading.Barrier(workers)
    starts: list[float] = []

    def work() -> None:
        try:
            for _ in range(rounds):
                barrier.wait(30)
                starts.extend([one.starts_at for one in take().items])
        finally:
            connection.close()

    with recording():
        before = RateBucket.objects.get().next_slot_at
        threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(starts) == WorkItem.objects.filter(state="processing").count() == len(set(starts))
    spaces = [later - earlier for earlier, later in pairwise(sorted(starts))]
    assert min(spaces) > SPACING / 200 - 0.001
    bucket = RateBucket.objects.get(limit_key=key)
    assert (bucket.next_slot_at - before).total_seconds() >= len(starts) * SPACING / 200
