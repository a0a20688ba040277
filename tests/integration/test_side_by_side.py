"""The pool of a worker: claiming goes on while flows run, and an ending is written whatever happens to the database meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest
from django.db import OperationalError

from projection import complete as completion
from projection import side_by_side, worker
from projection.complete import Ending
from projection.execute import Attempt
from projection.flows import Generation
from projection.models import WorkFailure, WorkItem
from projection.side_by_side import SideBySide
from projection.states import State
from projection.worker import claim_loop, drain_claims
from tests.deliveries import change, open_ingress
from tests.flows_of_tests import recording
from tests.workers_by_hand import ByHand

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


def run_all(attempts: Sequence[Attempt], written: Written, run: Callable[[Attempt], Ending | None]) -> None:
    pool = SideBySide(run, written.write, written.abandon)
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
    monkeypatch.setattr(side_by_side, "is_database_away", lambda: answers.pop(0))
    gone = OperationalError(2006, "gone away")
    with recording():
        written = Written(gone, gone)
        run_all(attempts_of(2), written, processed)
    assert written.abandoned == []
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def test_a_pool_that_closes_while_the_database_stays_away_leaves_its_items_to_their_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "CLOSING_SECONDS", 0.0)
    monkeypatch.setattr(side_by_side, "is_database_away", lambda: True)
    with recording():
        run_all(attempts_of(2), Written(*[OperationalError(2006, "gone away")] * 1000), processed)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processing"}


def test_an_ending_that_cannot_be_written_harms_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    with recording():
        attempts = attempts_of(4)
        bad = attempts[1].claimed.item.work_id
        written = Written()

        def write(endings: Sequence[Ending]) -> None:
            if any(ending.work_id == bad for ending in endings):
                raise ValueError("not this one")
            written.write(endings)

        pool = SideBySide(processed, write, written.abandon)
        pool.submit(attempts)
        pool.close()
    assert written.abandoned == [bad]
    assert sorted(WorkItem.objects.values_list("state", flat=True)) == ["processed"] * 3 + ["processing"]
    assert "left to its lease" in capsys.readouterr().err


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


def test_a_worker_whose_completion_failed_for_a_while_runs_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(5)])
    faults = [OperationalError(1213, "deadlock")] * 2

    def complete(endings: Sequence[Ending]) -> completion.Ended:
        if faults:
            raise faults.pop()
        return completion.complete(endings)

    monkeypatch.setattr(worker, "complete", complete)
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

    pool = SideBySide(processed, lambda _: None, lambda _: None)
    monkeypatch.setattr(pool, "_give_up_late_ones", look)
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
