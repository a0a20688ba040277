"""Rate limits: a claim takes what the limit of its route allows, a slot for each item, and leaves the rest alone."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from connectors.models import Route
from projection.claiming.claim import ClaimedBatch, claim
from projection.database import clock
from projection.facts import RateLimit
from projection.limits import rate_limits, route_limits
from projection.models import RateBucket, WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.server_work import texts_recorded
from tests.support.workers_by_hand import ByHand, at, report

pytestmark = pytest.mark.usefixtures("sound_database")

TEN_A_SECOND = RateLimit("api", 10, 1.0)
SPACING = 0.105
"""A tenth of a second, stretched by 5 %."""


def limited(limit: RateLimit = TEN_A_SECOND, count: int = 20, **options: object) -> Ingress:
    ingress = open_ingress()
    ingress.route("limited", mode="per_event", limit=limit, on=("changed",), **options)
    ingress.route("free", mode="per_event", on=("free",))
    ingress.admit(*[change(n) for n in range(count)])
    return ingress


def take(limit: int = 100) -> ClaimedBatch:
    return claim(limit, owner="worker", lease_seconds=60)


def time_passes(seconds: float) -> None:
    """For the limit alone."""
    bucket = RateBucket.objects.get()
    RateBucket.objects.update(next_slot_at=bucket.next_slot_at - timedelta(seconds=seconds))


def test_a_claim_takes_half_a_seconds_worth_and_spreads_its_starts() -> None:
    limited()
    with recording(), at(clock.now()):
        batch = take()
    assert len(batch.items) == 5
    starts = sorted(one.starts_at for one in batch.items)
    assert [later - earlier for earlier, later in pairwise(starts)] == pytest.approx([SPACING] * 4)
    assert WorkItem.objects.filter(state="pending", attempts=0).count() == 15


def test_an_exhausted_limit_keeps_no_other_work_waiting_and_says_when_it_opens() -> None:
    ingress = limited()
    with recording():
        ingress.admit(*[change(n, kind="free") for n in range(100, 103)])
        with at(clock.now()):
            assert {one.route.key for one in take(5).items} == {"limited"}
            assert {one.route.key for one in take().items} == {"free"}
            again = take()
    assert again.items == ()
    assert again.next_due is not None
    assert again.next_due == pytest.approx(5 * SPACING - 0.25, abs=0.1)


def test_the_next_items_start_after_those_before() -> None:
    limited()
    now = clock.now()
    with recording():
        with at(now):
            first = take()
        with at(now + timedelta(seconds=0.4)):
            second = take()
    assert (len(first.items), len(second.items)) == (5, 4)
    assert RateBucket.objects.get().next_slot_at - now == pytest.approx(timedelta(seconds=9 * SPACING), abs=timedelta(seconds=0.1))


def test_routes_of_one_name_share_it_and_the_newest_version_says_how_much() -> None:
    ingress = limited()
    ingress.route("other", mode="per_event", limit=TEN_A_SECOND, on=("other",))
    ingress.route("limited", version=2, mode="per_event", limit=RateLimit("api", 20, 1.0), on=("changed",))
    ingress.admit(*[change(n, kind="other") for n in range(50, 60)], *[change(n) for n in range(60, 70)])
    with recording(), at(clock.now()):
        assert len(take().items) == 10
    bucket = RateBucket.objects.get()
    assert (bucket.rate, bucket.per_microseconds) == (20, 1_000_000)


def test_an_older_version_that_is_met_later_changes_nothing() -> None:
    ingress = limited(RateLimit("api", 2, 1.0), 0)
    ingress.route("limited", version=2, mode="per_event", limit=TEN_A_SECOND, on=("changed",))
    new, old = Route.objects.order_by("-created_at", "-id").filter(route_key="limited").values_list("id", flat=True)
    Route.objects.filter(id=old).update(created_at=clock.now() - timedelta(hours=1))
    route_limits.learn([new])
    route_limits.declare([new])
    route_limits.learn([old])
    route_limits.declare([old])
    rate_limits.forget()
    route_limits.forget()
    route_limits.learn([old])
    route_limits.declare([old])
    assert RateBucket.objects.get().rate == 10


def test_a_name_belongs_to_its_namespace() -> None:
    limited()
    other = open_ingress(in_namespace="other", slug="second")
    other.route("limited", mode="per_event", limit=TEN_A_SECOND, on=("changed",))
    other.admit(*[change(n) for n in range(20)])
    with recording(), at(clock.now()):
        assert len(take().items) == 10
    assert RateBucket.objects.count() == 2


def test_no_slot_is_used_for_what_was_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    limited()
    with recording():
        take()
        time_passes(60)
        before = RateBucket.objects.get().next_slot_at
        preselect = WorkItem.objects.preselect_work_items

        def others_are_faster(*args: object, **options: object) -> object:
            found = preselect(*args, **options)
            WorkItem.objects.filter(id__in=[row[0] for row in found]).update(run_after=clock.now() + timedelta(hours=1))
            return found

        monkeypatch.setattr(WorkItem.objects, "preselect_work_items", others_are_faster)
        assert take().items == ()
    assert RateBucket.objects.get().next_slot_at == before


def test_work_of_many_limits_is_taken_in_a_bounded_number_of_statements() -> None:
    ingress = open_ingress()
    for number in range(8):
        ingress.route(f"r{number}", mode="per_event", limit=RateLimit(f"api-{number}", 10, 1.0), on=(f"k{number}",))
        ingress.admit(*[change(f"{number}-{n}", kind=f"k{number}") for n in range(10)])
    with recording(), at(clock.now()):
        take(1)  # what a process asks once
        with texts_recorded() as texts:
            assert len(take().items) == 39
    assert len(texts) <= 12, texts


def test_looking_at_work_that_is_limited_costs_two_statements() -> None:
    limited()
    with recording(), at(clock.now()):
        take()
        take()
        with texts_recorded() as texts:
            assert take().items == ()
    assert len(texts) == 2, texts


def test_retries_are_limited_too_and_no_budget_is_burned_by_waiting() -> None:
    limited(count=5)
    with recording():
        with at(clock.now()):
            for attempt in ByHand().claim():
                report(attempt, State.RETRY, outcome="retry", error="no")
            assert ByHand().claim() == []
        time_passes(60)
        assert [attempt.claimed.item.attempts for attempt in ByHand().claim()] == [2] * 5
