"""Atomic flows of a limited route start at their moment, as plain ones do, and keep no other work waiting meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from time import monotonic

import pytest

from projection.database import clock
from projection.execution import worker
from projection.execution.worker import claim_loop, drain_claims
from projection.facts import RateLimit
from projection.limits import rate_limits
from projection.limits.rate_limits import Bucket
from projection.models import RateBucket, WorkFailure, WorkItem
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival

pytestmark = pytest.mark.usefixtures("sound_database")

TEN_A_SECOND = RateLimit("api", 10, 1.0)
SPACING, CLOCKS = 0.105, 0.02
"""A tenth of a second, stretched by 5 %; and by how much two readings of two clocks may differ."""


def limited(count: int, limit: RateLimit = TEN_A_SECOND) -> Ingress:
    ingress = open_ingress()
    ingress.route("limited", mode="per_event", flow="test.atomic", limit=limit, on=("changed",))
    ingress.route("free", mode="per_event", flow="test.free", on=("free",))
    ingress.route("plain", mode="per_event", on=("plain",))
    ingress.admit(*[change(n) for n in range(count)])
    return ingress


def run_all() -> None:
    """As a worker of the cluster does, until nothing is left."""
    claim_loop(stop=lambda: not WorkItem.objects.exclude(state="processed").exists())


@pytest.fixture
def starts() -> list[float]:
    return []


@pytest.fixture(params=[False, True], ids=["one by one", "batch"])
def batch(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_none_starts_before_its_moment(starts: list[float], batch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(12)
    planned: list[float] = []
    real = Bucket.starts
    monkeypatch.setattr(Bucket, "starts", lambda bucket, count: noted(planned, real(bucket, count)))
    with recording("test.atomic", atomic=True, batch=batch) as seen, recording("test.free", atomic=True), recording():
        seen.acts += [lambda _: starts.append(monotonic())] * 12
        run_all()
    assert len(planned) == len(starts) == 12
    assert all(real >= plan for real, plan in zip(sorted(starts), sorted(planned), strict=True))
    assert planned[-1] - planned[0] > 11 * SPACING - CLOCKS
    assert set(WorkItem.objects.values_list("state", "attempts")) == {("processed", 1)}


def noted(notes: list[float], moments: list[float]) -> list[float]:
    notes += moments
    return moments


@pytest.fixture
def only_the_first_may_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moments of the others of a claim are an hour away."""
    real = Bucket.starts

    def an_hour_later(bucket: Bucket, count: int) -> list[float]:
        return [start + (3600 if number else 0) for number, start in enumerate(real(bucket, count))]

    monkeypatch.setattr(Bucket, "starts", an_hour_later)


def test_who_waits_for_its_moment_keeps_nobody_waiting_and_is_handed_back_by_a_worker_that_stops(
    only_the_first_may_start: None,
) -> None:
    ingress = limited(4)
    stopped = threading.Event()
    with (
        recording("test.atomic", atomic=True) as seen,
        recording("test.free", atomic=True) as free,
        recording() as plain,
    ):
        arrivals = change(100, kind="free"), change(101, kind="plain")
        seen.acts.append(lambda _: Rival(lambda: ingress.admit(*arrivals)).result())
        free.acts.append(lambda _: stopped.set() if plain.runs else plain.acts.append(lambda _: stopped.set()))
        claim_loop(stop=stopped.is_set)
    assert (len(seen.runs), len(free.runs), len(plain.runs)) == (1, 1, 1)
    states = WorkItem.objects.filter(companion_flow="atomic").order_by("id").values_list("state", "attempts")
    assert list(states) == [("processed", 1), *[("retry", 0)] * 3]
    assert not WorkFailure.objects.exists()


def test_their_leases_are_kept_while_they_wait(only_the_first_may_start: None, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(3)
    kept: list[int] = []

    def stop() -> bool:
        if not WorkItem.objects.filter(state="processed").exists():
            return False
        kept.append(sum(len(ids) for ids in held.worker._heartbeat._to_extend().values()))
        return True

    with recording("test.atomic", atomic=True), recording("test.free", atomic=True), recording():
        held = Held(monkeypatch)
        claim_loop(stop=stop)
    assert kept[0] == 2


class Held:
    """Catches the worker that a loop makes."""

    worker: worker.ClaimWorker

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = worker.ClaimWorker.__init__

        def init(made: worker.ClaimWorker, *arguments: object, **options: object) -> None:
            real(made, *arguments, **options)
            self.worker = made

        monkeypatch.setattr(worker.ClaimWorker, "__init__", init)


@pytest.fixture(params=["test.atomic", "test.record"], ids=["atomic", "plain"])
def late(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A worker that comes to each attempt of this flow a minute after its moment."""
    real = Bucket.starts
    monkeypatch.setattr(Bucket, "starts", lambda bucket, count: [start - 60 for start in real(bucket, count)])
    return request.param


def ready(flow: str, count: int = 1) -> None:
    ingress = open_ingress()
    ingress.route("limited", mode="per_event", flow=flow, limit=TEN_A_SECOND, on=("changed",))
    ingress.admit(*[change(n) for n in range(count)])


def test_who_comes_too_late_takes_another_slot(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(late)
    again, slots = rate_limits.again, list[datetime]()

    def a_minute_later(key: str) -> bool:
        RateBucket.objects.update(next_slot_at=clock.now() - timedelta(minutes=1))
        granted = again(key)
        slots.append(RateBucket.objects.get().next_slot_at)
        return granted

    monkeypatch.setattr(rate_limits, "again", a_minute_later)
    before = clock.now()
    with recording(late, atomic=late == "test.atomic"):
        assert drain_claims() == 1
    assert WorkItem.objects.get().state == "processed"
    assert [slot >= before for slot in slots] == [True]


def test_who_comes_too_late_and_finds_none_is_handed_back_for_a_later_one(late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(late, 5)
    refused: list[str] = []

    def none_at_first(key: str) -> bool:
        if len(refused) < 7:
            refused.append(key)
            return False
        return True

    monkeypatch.setattr(rate_limits, "again", none_at_first)
    with recording(late, atomic=late == "test.atomic") as seen:
        run_all()
    assert (len(refused), len(seen.runs)) == (7, 5)
    assert set(WorkItem.objects.values_list("state", "attempts")) == {("processed", 1)}
    assert not WorkFailure.objects.exists()


def test_a_limit_without_a_slot_is_not_asked_again_by_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    ready("test.record")
    with recording():
        key = rate_limits.key_of("default", "api")
        drain_claims()
        RateBucket.objects.update(next_slot_at=clock.now() + timedelta(hours=1))
        assert rate_limits.again(key) is False
        RateBucket.objects.update(next_slot_at=clock.now() - timedelta(hours=1))
        assert rate_limits.again(key) is False, "not asked"
        monkeypatch.setattr(rate_limits, "REFUSED_SECONDS", 0.0)
        assert rate_limits.again(key) is True
