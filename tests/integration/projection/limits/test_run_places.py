"""Limits on how many run at once: a claim takes as many as there are places, whoever of all workers has the others."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from connectors.models import Route
from projection.claiming import claim as claim_room
from projection.claiming.claim import ClaimedBatch, claim
from projection.claiming.rescue import rescue
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.facts import RateLimit
from projection.flows import Generation
from projection.limits import rate_limits, route_limits
from projection.limits.destinations import AT_ONCE
from projection.models import RateBucket, RunPlace, WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival
from tests.support.server_work import texts_recorded
from tests.support.workers_by_hand import ByHand, at, let_leases_run_out, report

pytestmark = pytest.mark.usefixtures("sound_database")

THREE = RateLimit("api", concurrency=3)


def limited(limit: RateLimit = THREE, count: int = 20) -> Ingress:
    ingress = open_ingress()
    ingress.route("limited", mode="per_event", limit=limit, on=("changed",))
    ingress.route("free", mode="per_event", on=("free",))
    ingress.admit(*[change(n) for n in range(count)])
    return ingress


def take(owner: str = "worker", limit: int = 100) -> ClaimedBatch:
    return claim(limit, owner=owner, lease_seconds=60)


def test_a_claim_takes_what_there_are_places_for_and_keeps_no_other_work_waiting() -> None:
    ingress = limited()
    ingress.admit(*[change(n, kind="free") for n in range(100, 103)])
    with recording():
        first = take()
        assert sorted(one.route.key for one in first.items) == ["free"] * 3 + ["limited"] * 3
        assert {one.starts_at for one in first.items} == {0.0}, "nothing limits when they start"
        again = take()
        assert (again.items, again.next_due) == ((), None), "nobody knows when one of them ends"
    assert set(WorkItem.objects.filter(route_id__gt=0, state="pending").values_list("attempts", flat=True)) == {0}


@pytest.mark.parametrize("state", [State.PROCESSED, State.RETRY, State.DEAD])
def test_an_attempt_that_ended_gives_its_place_to_the_next(state: State) -> None:
    limited()
    with recording():
        worker = ByHand()
        attempts = worker.claim()
        assert len(attempts) == 3
        outcome = {} if state is State.PROCESSED else {"outcome": state.value, "error": "no", "delay_ms": 3_600_000}
        for attempt in attempts[:2]:
            report(attempt, state, **outcome)
        assert len(worker.claim()) == 2
        assert worker.claim() == []


def test_the_places_of_a_worker_that_died_come_back_with_its_leases() -> None:
    limited()
    with recording():
        gone = ByHand("gone").claim()
        assert (len(gone), ByHand("other").claim()) == (3, [])
        let_leases_run_out()
        assert len(ByHand("other").claim()) == 3
        assert rescue() == 3
        assert ByHand("other").claim() == []


def test_a_worker_has_no_more_of_a_limit_than_it_runs_at_once() -> None:
    limited(RateLimit("api", concurrency=2 * AT_ONCE + 1), count=40)
    with recording():
        sizes = [len(take(owner).items) for owner in ("a", "a", "b", "c", "d")]
    assert sizes == [AT_ONCE, 0, AT_ONCE, 1, 0]


def test_routes_and_versions_of_one_name_share_its_places_and_the_newest_says_how_many() -> None:
    ingress = limited(RateLimit("api", concurrency=2))
    with recording():
        assert len(take().items) == 2
        ingress.route("other", mode="per_event", limit=RateLimit("api", concurrency=2), on=("other",))
        ingress.admit(*[change(n, kind="other") for n in range(50, 60)])
        assert take().items == ()
        ingress.route("limited", version=2, mode="per_event", limit=RateLimit("api", concurrency=4), on=("changed",))
        ingress.admit(change(70))
        # Another process has met version 2, and told the database.
        route_limits.learn(Route.objects.values_list("id", flat=True))
        route_limits.declare(Route.objects.values_list("id", flat=True))
        assert len(take("second").items) == 2
        ingress.route("limited", version=3, mode="per_event", limit=RateLimit("api", concurrency=3), on=("changed",))
        route_limits.learn(Route.objects.values_list("id", flat=True))
        route_limits.declare(Route.objects.values_list("id", flat=True))
        running = WorkItem.objects.filter(state="processing")
        running.filter(id=running.order_by("id")[0].id).update(lease_expires_at=clock.now() - timedelta(seconds=1))
        assert take("third").items == (), "three still run"
    assert RunPlace.objects.count() == 4
    rescue()


def test_a_process_that_knows_nothing_yet_counts_what_others_run() -> None:
    limited()
    with recording():
        assert len(take("a").items) == 3
        claim_room.forget()
        rate_limits.forget()
        assert take("b").items == ()


def test_both_limits_hold_together() -> None:
    limited(RateLimit("api", 4, 1.0, concurrency=10))
    with recording(), at(clock.now()):
        assert len(take("a").items) == 2, "half a second's worth"
        RateBucket.objects.update(next_slot_at=clock.now() - timedelta(seconds=60))
        RateBucket.objects.update(concurrency=3)
        assert len(take("b").items) == 1


def test_no_place_is_used_for_what_was_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    limited()
    with recording():
        preselect = WorkItem.objects.preselect_work_items

        def others_are_faster(*args: object, **options: object) -> object:
            found = preselect(*args, **options)
            WorkItem.objects.filter(id__in=[row[0] for row in found]).update(run_after=clock.now() + timedelta(hours=1))
            return found

        monkeypatch.setattr(WorkItem.objects, "preselect_work_items", others_are_faster)
        assert take().items == ()
    assert not RunPlace.objects.exclude(work_item_id=None).exists()


def test_it_costs_a_bounded_number_of_statements() -> None:
    ingress = open_ingress()
    for number in range(8):
        ingress.route(f"r{number}", mode="per_event", limit=RateLimit(f"api-{number}", concurrency=2), on=(f"k{number}",))
        ingress.admit(*[change(f"{number}-{n}", kind=f"k{number}") for n in range(10)])
    with recording():
        route_limits.learn(Route.objects.values_list("id", flat=True))
        route_limits.declare(Route.objects.values_list("id", flat=True))
        take("first", 1)  # what a process asks once
        with texts_recorded() as texts:
            assert len(take().items) == 15
        assert len(texts) <= 12, texts
        take()
        with texts_recorded() as texts:
            assert take().items == ()
    assert len(texts) == 2, "nothing but closed work is due"


def test_never_more_run_at_once_whatever_the_workers_do_and_each_end_lets_the_next_begin() -> None:
    """Two workers drain 24 items; each run waits until as many as may are running, so none could be left out unnoticed."""
    limited(count=24)
    together, running, most, lock = threading.Barrier(3), [0], [0], threading.Lock()

    def run(_: Generation) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(60)
        with lock:
            running[0] -= 1

    with recording() as seen:
        seen.acts += [run] * 24
        workers = [Rival(drain_claims), Rival(drain_claims)]
        done = sum(worker.result(120) for worker in workers)
    assert (done, most[0], len(seen.runs)) == (24, 3, 24)
    assert set(WorkItem.objects.values_list("state", "attempts")) == {("processed", 1)}
