"""Bulk jobs beside themselves: any number of runners leave one result for each item."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, transaction

from connectors.operations import bulk_jobs
from connectors.operations.bulk_jobs import DeadLetters
from projection.admission.admit import lock_admission
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.bulk.steps import run_step
from projection.execution.worker import drain_claims
from projection.refusals import Refused
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, Gate, at_each_statement, stopped_at
from tests.support.jobs_by_hand import assert_exact, codes, dead_letters, fixed, now, run, start, step
from tests.support.rivals import Rival

pytestmark = pytest.mark.usefixtures("sound_database")

RUNNERS = 4


@pytest.mark.parametrize("kind", list(JobKind))
def test_runners_side_by_side_share_a_job(monkeypatch: pytest.MonkeyPatch, kind: JobKind) -> None:
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 3)
    monkeypatch.setattr("projection.bulk.membership.PAGE", 7)
    with recording() as seen:
        dead_letters(seen, *range(30))
        job = start(kind)
        together = threading.Barrier(RUNNERS)

        def runner() -> None:
            try:
                together.wait()
                bulk_jobs.run(job.id)
            finally:
                connection.close()

        with ThreadPoolExecutor(RUNNERS) as pool:
            for one in [pool.submit(runner) for _ in range(RUNNERS)]:
                one.result(timeout=60)
        assert now(job).state is JobState.FINISHED
        assert codes(job) == {"done": 30}
        assert_exact(job)
        assert now(job).step == 5 + 10, "a step that was lost did not count"
        drain_claims()
        if kind is JobKind.REPLAY:
            assert Counter(seen.sources) == Counter({str(contact): 1 for contact in range(30)})


def test_of_two_that_take_the_same_step_one_does_it() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
        job = fixed(start())
        with stopped_at(Gate(COMMIT), lambda: run_step(job, DeadLetters())) as first:
            second = Rival(lambda: run_step(job, DeadLetters()))
            second.waits()
        assert (first.result(), second.result()) == (2, None)
        assert_exact(job)
        drain_claims()


@pytest.mark.parametrize("verb", [bulk_jobs.pause, bulk_jobs.cancel])
def test_an_operator_waits_for_the_step_that_is_being_done(
    monkeypatch: pytest.MonkeyPatch, verb: Callable[..., JobRow | Refused]
) -> None:
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 1)
    with recording() as seen:
        dead_letters(seen, 1, 2)
        job = fixed(start())
        with stopped_at(Gate(COMMIT), lambda: run_step(job, DeadLetters())) as stepping:
            operator = Rival(lambda: verb(job.id, actor="bob", reason=""))
            operator.waits()
        assert stepping.result() == 1
        assert isinstance(operator.result(), JobRow)
        assert run(job).done == 1
        assert_exact(job)
        drain_claims()


def test_a_step_waits_for_an_admission_of_its_namespace_and_another_job_does_not() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2)
        waiting = fixed(start())
        with transaction.atomic():
            lock_admission("default", {ingress.pack.id: ingress.pack.incarnation})
            stepping = Rival(lambda: run_step(waiting, DeadLetters()))
            stepping.waits()
            free = Rival(lambda: start(JobKind.DISCARD, actor="bob"))
            assert free.result().state is JobState.RUNNING
        assert stepping.result() == 2
        drain_claims()


def test_two_jobs_about_the_same_items_replay_each_once() -> None:
    with recording() as seen:
        dead_letters(seen, *range(10))
        both = [fixed(start(actor=actor)) for actor in ("ann", "bob")]
        rivals = [Rival(lambda job=job: bulk_jobs.run(job.id)) for job in both]
        for rival in rivals:
            rival.result()
        assert sum((codes(job) for job in both), Counter()) == {"done": 10, "already_replayed": 10}
        for job in both:
            assert_exact(job)
        drain_claims()
        assert Counter(seen.sources) == Counter({str(contact): 1 for contact in range(10)})


def test_a_lost_connection_is_raised_and_nothing_is_said_of_the_items() -> None:
    with recording() as seen:
        dead_letters(seen, 1)
        job = fixed(start())

        def lose(sql: str) -> None:
            if sql == COMMIT:
                raise OperationalError(2013, "Lost connection to server during query")

        with pytest.raises(OperationalError), at_each_statement(lose):
            step(job)
        connection.close()
        assert codes(job) == {"waiting": 1}
        assert jobs.find(job.id) is not None
        assert run(job).done == 1
        assert_exact(job)
        drain_claims()
