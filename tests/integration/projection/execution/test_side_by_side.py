"""The pool of a worker: claiming goes on while flows run, and an ending is written whatever happens to the database meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest
from django.db import OperationalError

from projection.claiming.claim import ClaimedBatch
from projection.completion import complete as completion
from projection.execution import dispatcher, thread_pool, worker
from projection.execution.attempts import Attempt
from projection.execution.dispatcher import Dispatcher
from projection.execution.heartbeat import Heartbeat
from projection.execution.worker import claim_loop, drain_claims
from projection.facts import RateLimit
from projection.flows import Generation
from projection.leases import Ending
from projection.limits import starts
from projection.models import WorkFailure, WorkItem
from projection.states import State
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.running import wait_until
from tests.support.workers_by_hand import ByHand

pytestmark = [pytest.mark.usefixtures("sound_database")]


def attempts_of(count: int) -> list[Attempt]:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(count)])
    return ByHand().claim()


class Written:
    """Writes endings for real, after `faults` have been raised."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.batches: list[int] = []
        self.abandoned: list[str] = []

    def write(self, endings: Sequence[Ending]) -> None:
        self.batches.append(len(endings))
        if self.faults:
            raise self.faults.pop(0)
        completion.complete(endings)

    def abandon(self, ending: Ending) -> None:
        self.abandoned.append(ending.work_id)


class ByTest(Dispatcher):
    """Runs, writes and abandons as the test says."""

    def __init__(
        self,
        run: Callable[[Attempt], Ending | None],
        write: Callable[[Sequence[Ending]], None],
        abandon: Callable[[Ending], None],
    ) -> None:
        super().__init__(Heartbeat("worker"))
        self._pool._run, self._write, self._abandon = run, write, abandon


def run_all(attempts: Sequence[Attempt], written: Written, run: Callable[[Attempt], Ending | None]) -> None:
    pool = ByTest(run, written.write, written.abandon)
    pool.submit(attempts)
    pool.close()


def processed(attempt: Attempt) -> Ending:
    return attempt.ending(State.PROCESSED)


def test_endings_are_written_together() -> None:
    with recording():
        written = Written()
        run_all(attempts_of(20), written, processed)
    assert sum(written.batches) == 20
    assert len(written.batches) < 10
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


@pytest.mark.parametrize("fault", [OperationalError(1213, "deadlock"), OperationalError(1205, "lock wait")])
def test_a_conflict_that_does_not_end_in_its_unit_is_tried_again_without_running_the_flow_again(fault: Exception) -> None:
    runs: list[str] = []
    with recording():
        attempts = attempts_of(3)
        written = Written(fault, fault)
        run_all(attempts, written, lambda attempt: runs.append(attempt.claimed.item.work_id) or processed(attempt))
    assert len(runs) == 3
    assert written.abandoned == []
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_endings_wait_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [True, True, False]
    monkeypatch.setattr(dispatcher, "is_database_away", lambda _: answers.pop(0))
    gone = OperationalError(2006, "gone away")
    with recording():
        written = Written(gone, gone)
        run_all(attempts_of(2), written, processed)
    assert written.abandoned == []
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_a_pool_that_closes_while_the_database_stays_away_leaves_its_items_to_their_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "CLOSING_SECONDS", 0.0)
    monkeypatch.setattr(dispatcher, "is_database_away", lambda _: True)
    with recording():
        run_all(attempts_of(2), Written(*[OperationalError(2006, "gone away")] * 1000), processed)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processing"}


@pytest.mark.parametrize("losses", [1, 2])
def test_a_connection_that_the_server_ended_is_no_ending_s_fault_unless_it_happens_again(losses: int) -> None:
    written = Written(*[OperationalError(2013, "Lost connection to server during query")] * losses)
    with recording():
        run_all(attempts_of(1), written, processed)
    assert written.abandoned == ([] if losses == 1 else [WorkItem.objects.get().work_id])
    assert WorkItem.objects.get().state == ("processed" if losses == 1 else "processing")


def test_an_ending_that_cannot_be_written_harms_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    with recording():
        attempts = attempts_of(4)
        bad = attempts[1].claimed.item.work_id
        written = Written()

        def write(endings: Sequence[Ending]) -> None:
            if any(ending.work_id == bad for ending in endings):
                raise ValueError("not this one")
            written.write(endings)

        pool = ByTest(processed, write, written.abandon)
        pool.submit(attempts)
        pool.close()
    assert written.abandoned == [bad]
    assert sorted(WorkItem.objects.values_list("state", flat=True)) == ["processed"] * 3 + ["processing"]
    assert "not written; the item runs again after its lease expires" in capsys.readouterr().err


def test_a_worker_claims_what_arrives_while_a_slow_flow_runs() -> None:
    ingress = open_ingress()
    ingress.route("slow", mode="per_event", flow="test.slow", on=("slow",))
    ingress.route("fast", mode="per_event", on=("fast",))
    ingress.admit(change(1, kind="slow"))
    arrived, stopped = threading.Event(), threading.Event()

    def slow(generation: Generation) -> None:
        ingress.admit(change(2, kind="fast"))
        assert arrived.wait(20)
        stopped.set()

    with recording() as seen, recording("test.slow") as slowly:
        slowly.acts.append(slow)
        seen.acts.append(lambda _: arrived.set())
        claim_loop(stop=stopped.is_set)
    assert [item.state for item in WorkItem.objects.all()] == ["processed", "processed"]


def test_a_slow_destination_keeps_no_other_work_waiting() -> None:
    """More of it waits than this process can start: what arrives for others is claimed all the same, and no more of the slow one."""
    ingress = open_ingress()
    ingress.route("slow", mode="per_event", flow="test.slow", on=("slow",))
    ingress.route("fast", mode="per_event", on=("fast",))
    ingress.admit(*[change(n, kind="slow") for n in range(40)])
    arrived, stopped, first = threading.Event(), threading.Event(), threading.Lock()
    claimed: list[int] = []

    def slow(_: Generation) -> None:
        if first.acquire(blocking=False):
            ingress.admit(*[change(n, kind="fast") for n in range(100, 105)])
        assert arrived.wait(20)
        stopped.set()

    def fast(_: Generation) -> None:
        claimed.append(WorkItem.objects.filter(companion_flow="slow", state="processing").count())
        if len(claimed) == 5:
            arrived.set()

    with recording() as seen, recording("test.slow") as slowly:
        slowly.acts += [slow] * starts.A_DESTINATION
        seen.acts += [fast] * 5
        claim_loop(stop=stopped.is_set, batch=10)
    assert claimed == [10] * 5


def test_what_comes_while_others_of_its_destination_run_waits_for_none_of_them() -> None:
    """Each run ends only when all four have begun, though each came alone."""
    begun = threading.Barrier(starts.A_DESTINATION)

    def run(attempt: Attempt) -> Ending:
        begun.wait(20)
        return processed(attempt)

    with recording():
        written = Written()
        pool = ByTest(run, written.write, written.abandon)
        for attempt in attempts_of(starts.A_DESTINATION):
            pool.submit([attempt])
            wait_until(lambda: not pool._pool.unstarted(), "it has begun")
        pool.close()
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_nothing_more_is_claimed_while_every_thread_is_in_use() -> None:
    ingress = open_ingress()
    for name in ("one", "two", "three"):
        ingress.route(name, mode="per_event", flow=f"test.{name}", on=(name,))
    ingress.admit(*[change(f"{name}-{n}", kind=name) for name in ("one", "two") for n in range(20)])
    threads, stopped = threading.Barrier(thread_pool.THREADS), threading.Event()

    def slow(_: Generation) -> None:
        if threads.wait(20) == 0:
            ingress.admit(change("three", kind="three"))
            threading.Event().wait(3 * dispatcher.TICK_SECONDS)  # nothing is awaited: the worker must let this time pass
            stopped.set()
        assert stopped.wait(20)

    with recording("test.one") as one, recording("test.two") as two, recording("test.three") as three:
        one.acts += [slow] * starts.A_DESTINATION
        two.acts += [slow] * starts.A_DESTINATION
        claim_loop(stop=stopped.is_set, batch=40)
    assert three.runs == []


def test_an_attempt_of_a_limited_route_starts_at_its_moment_and_needs_no_thread_until_then() -> None:
    ingress = open_ingress()
    ingress.route("limited", mode="per_event", on=("changed",), limit=RateLimit("api", 20, 1.0))
    ingress.admit(*[change(n) for n in range(8)])
    started: list[float] = []
    with recording():
        begun = monotonic()
        attempts = ByHand().claim()
        written = Written()
        pool = ByTest(lambda one: started.append(monotonic()) or processed(one), written.write, written.abandon)
        pool.submit(attempts)
        assert pool.busy() is not None
        pool.close()
    planned = sorted(attempt.claimed.starts_at for attempt in attempts)
    assert len(started) == len(planned) == 8
    assert all(0 <= real - plan < 0.5 for real, plan in zip(started, planned, strict=True))
    assert started[-1] - begun >= 7 * 0.0525


def test_what_waits_for_its_moment_is_handed_back_by_a_worker_that_stops() -> None:
    ingress = open_ingress()
    ingress.route("limited", mode="per_event", on=("changed",), limit=RateLimit("api", 1, 1.0))
    ingress.admit(change(1))
    with recording():
        (attempt,) = ByHand().claim()
        waiting = replace(attempt, claimed=replace(attempt.claimed, starts_at=monotonic() + 3600))
        written = Written()
        pool = ByTest(processed, written.write, written.abandon)
        pool.submit([waiting])
        pool.hand_back()
        pool.close()
    item = WorkItem.objects.get()
    assert (item.state, item.attempts) == ("retry", 0)


def test_a_worker_whose_completion_failed_for_a_while_runs_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(5)])
    faults = [OperationalError(1213, "deadlock")] * 2

    def complete(endings: Sequence[Ending]) -> completion.Ended:
        if faults:
            raise faults.pop()
        return completion.complete(endings)

    monkeypatch.setattr(dispatcher, "complete", complete)
    with recording() as seen:
        assert drain_claims() == 5
    assert (faults, len(seen.runs)) == ([], 5)
    assert set(WorkItem.objects.values_list("state", "attempts")) == {("processed", 1)}
    assert WorkFailure.objects.count() == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # it is what the test makes happen
def test_a_pool_whose_keeper_died_says_that_it_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    died = threading.Event()

    def look() -> None:
        if threading.current_thread().name == "keeper":
            died.set()
            raise RuntimeError("a bug")

    pool = ByTest(processed, lambda _: None, lambda _: None)
    monkeypatch.setattr(pool._pool, "give_up_late_ones", look)
    assert not pool.is_broken
    pool.submit([])
    assert died.wait(10)
    keeper = pool._keeper
    assert keeper is not None
    keeper.join(10)
    assert pool.is_broken


def test_only_the_worker_s_own_thread_asks_whether_it_stops() -> None:
    """The flag of a resident loop asks the connection of its thread, which holds the loop's slot."""
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(30)])
    asked: set[str] = set()

    def stop() -> bool:
        asked.add(threading.current_thread().name)
        return False

    with recording():
        assert drain_claims(batch=10, stop=stop) == 30
    assert asked == {threading.current_thread().name}


def test_a_drain_claims_again_when_what_ran_ended_behind_its_last_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7), change(7))  # one lane: the second is due once the first has ended
    real = worker.claim

    def claim(*args: Any, **options: Any) -> ClaimedBatch:
        batch = real(*args, **options)
        ends = monotonic() + 10
        while not batch.ids and WorkItem.objects.filter(state="processing").exists() and monotonic() < ends:
            threading.Event().wait(0.01)
        return batch

    monkeypatch.setattr(worker, "claim", claim)
    with recording():
        assert drain_claims() == 2
    assert [item.state for item in WorkItem.objects.all()] == ["processed", "processed"]
