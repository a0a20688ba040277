"""Operators and bulk jobs: pause, resume, cancel, throttle; each guarded, told and recorded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from connectors.models import AuditEntry
from connectors.operations import bulk_jobs
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.bulk.steps import run_step
from projection.execution.worker import drain_claims
from projection.job_models import Job, JobItem
from projection.refusals import Refused
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import assert_exact, codes, dead_letters, fixed, now, run, run_with_workers, start, step

pytestmark = pytest.mark.usefixtures("sound_database")

WHO = {"actor": "bob", "reason": "lunch"}


def test_a_paused_job_does_nothing_until_it_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 1)
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        job = fixed(start())
        step(job)
        before = now(job)
        assert isinstance(bulk_jobs.pause(job.id, **WHO), JobRow)
        assert (now(job).state, now(job).due_in, jobs.first_due()) == (JobState.PAUSED, None, None)
        assert run_step(before, bulk_jobs.DeadLetters()) is None, "who read it before the pause is too late"
        assert (run(job).state, now(job).done) == (JobState.PAUSED, 1)
        assert isinstance(bulk_jobs.resume(job.id, **WHO), JobRow)
        assert (run(job).state, now(job).done) == (JobState.FINISHED, 3)
        assert_exact(job)
        drain_claims()
    entries = AuditEntry.objects.filter(target=f"job {job.id}", actor="bob").order_by("id")
    assert [(entry.action, entry.reason) for entry in entries] == [("job.pause", "lunch"), ("job.resume", "lunch")]


def test_a_cancelled_job_keeps_what_it_did_and_skips_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.steps.ITEMS_A_STEP", 2)
    monkeypatch.setattr("projection.bulk.membership.PAGE", 2)
    with recording() as seen:
        dead_letters(seen, 1, 1, 2, 3, 4)
        job = fixed(start())
        step(job)
        before = now(job)
        assert isinstance(bulk_jobs.cancel(job.id, **WHO), JobRow)
        assert run_step(before, bulk_jobs.DeadLetters()) is None
        ended = run(job)
        assert (ended.state, ended.done, ended.deferred, ended.skipped) == (JobState.CANCELLED, 1, 0, 4)
        assert ended.finished is not None
        assert codes(job) == {"done": 1, "cancelled": 4}
        assert_exact(job)
        drain_claims()


def test_a_job_cancelled_before_its_membership_was_fixed_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.membership.PAGE", 2)
    with recording() as seen:
        dead_letters(seen, 1, 2, 3)
        job = start()
        step(job)
        bulk_jobs.cancel(job.id, **WHO)
        ended = run(job)
    assert (ended.state, ended.total, ended.skipped, ended.fixed) == (JobState.CANCELLED, 2, 2, None)
    assert_exact(job)


@pytest.mark.parametrize(
    ("verb", "code"), [(bulk_jobs.pause, "not_running"), (bulk_jobs.resume, "not_paused"), (bulk_jobs.cancel, "ended")]
)
def test_an_ended_or_unknown_job_is_refused(verb: Callable[..., JobRow | Refused], code: str) -> None:
    job = run(start())
    entries = AuditEntry.objects.count()
    for job_id, expected in ((job.id, code), (job.id + 1, "not_found")):
        answer = verb(job_id, **WHO)
        assert isinstance(answer, Refused)
        assert (answer.id, answer.code) == (str(job_id), expected)
    assert AuditEntry.objects.count() == entries


def test_another_rate_is_refused_once_the_job_has_ended() -> None:
    job = start()
    for _ in range(2):
        answer = bulk_jobs.throttle(job.id, 7, **WHO)
        assert isinstance(answer, JobRow)
        assert answer.rate == 7
    run(job)
    for rate in (7, 8):
        answer = bulk_jobs.throttle(job.id, rate, **WHO)
        assert isinstance(answer, Refused)
        assert answer.code == "ended"


@pytest.mark.parametrize("kind", list(JobKind))
def test_a_throttled_job_acts_on_no_more_than_its_rate_in_a_second(kind: JobKind) -> None:
    with recording() as seen:
        dead_letters(seen, *range(5))
        job = fixed(start(kind, rate=2))
        moments = []
        for done in (2, 4, 5):
            jobs.postpone(now(job), 0.0)
            step(job)
            assert now(job).done == done
            moments.append(Job.objects.values_list("stepped_at", "next_step_at").get())
        assert [following - stepped for stepped, following in moments[:2]] == [timedelta(seconds=1)] * 2
        assert now(job).state is JobState.FINISHED
        drain_claims()


def test_a_step_that_is_not_due_yet_is_not_done() -> None:
    with recording() as seen:
        dead_letters(seen, 1)
        job = fixed(start())
        jobs.postpone(job, 60.0)
        assert not now(job).is_due
        assert run_step(now(job), bulk_jobs.DeadLetters()) is None
        assert JobItem.objects.get().state == "waiting"
        assert run_with_workers_after_the_wait(job) == 1


def run_with_workers_after_the_wait(job: JobRow) -> int:
    jobs.postpone(now(job), 0.0)
    return run_with_workers(job).done


def test_many_deferred_items_are_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.steps.LOOKS_A_SECOND", 1)
    with recording() as seen:
        dead_letters(seen, 1, 1, 1)
        job = run(start())
        assert job.deferred == 2
        stepped, following = Job.objects.values_list("stepped_at", "next_step_at").get()
        assert following - stepped == timedelta(seconds=3)
        drain_claims()


def test_the_newest_jobs_come_first() -> None:
    made = [start().id for _ in range(3)]
    assert [job.id for job in jobs.newest(2)] == made[:0:-1]
    assert [job.id for job in jobs.newest(2, before=made[1])] == made[:1]
