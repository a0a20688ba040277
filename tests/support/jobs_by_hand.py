"""Bulk jobs that a test drives step by step, and the dead letters that they are about."""

from __future__ import annotations

from collections import Counter
from typing import Any

from connectors.operations import bulk_jobs
from connectors.operations.bulk_jobs import DeadLetters
from connectors.operations.work_filters import WorkFilter
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind, JobRow, JobState
from projection.bulk.steps import run_step
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.job_models import JobItem
from projection.models import WorkItem
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import Recorder

EVERYTHING = WorkFilter()


def dead_letters(seen: Recorder, *contacts: int, ingress: Ingress | None = None, **options: Any) -> Ingress:
    """One dead generation of each contact, in the given order; a contact named twice has two."""
    if ingress is None:
        ingress = open_ingress()
        ingress.route(**options)
    for contact in contacts:
        seen.raises_for[str(contact)] = DeadLetter("bad")
    for contact in contacts:
        ingress.admit(change(contact))
        drain_claims()
    seen.raises_for.clear()
    seen.runs.clear()
    seen.sources.clear()
    return ingress


def start(
    kind: JobKind = JobKind.REPLAY, chosen: WorkFilter = EVERYTHING, *, actor: str = "ann", retarget: bool = False, **options: Any
) -> JobRow:
    """A job without a throttle that was confirmed before its preview was counted: its steps fix its membership."""
    made = bulk_jobs.make(kind, chosen, actor=actor, retarget=retarget)
    job = bulk_jobs.confirm(made.id, actor=actor, **{"reason": "fixed", "rate": 0, **options})
    assert isinstance(job, JobRow)
    return job


def preview(
    kind: JobKind = JobKind.REPLAY, chosen: WorkFilter = EVERYTHING, *, actor: str = "ann", retarget: bool = False
) -> JobRow:
    """A preview that is counted to its end."""
    return bulk_jobs.count_all(bulk_jobs.make(kind, chosen, actor=actor, retarget=retarget))


def now(job: JobRow) -> JobRow:
    """The job as it is now."""
    found = jobs.find(job.id)
    assert found is not None
    return found


def step(job: JobRow) -> int | None:
    """Its next step; it has to be due."""
    assert now(job).is_due
    return run_step(now(job), DeadLetters())


def fixed(job: JobRow) -> JobRow:
    """The job with its membership fixed."""
    while now(job).fixed is None:
        step(job)
    return now(job)


def run(job: JobRow) -> JobRow:
    """The job once it has ended, is paused, or only waits for replays."""
    found = bulk_jobs.run(job.id)
    assert found is not None
    return found


def run_with_workers(job: JobRow) -> JobRow:
    """The job once it has ended; due work is executed whenever it waits for replays."""
    for _ in range(1000):
        if run(job).state is not JobState.RUNNING:
            return now(job)
        drain_claims()
        jobs.postpone(now(job), 0.0)  # the moment until it looks again is over
    raise AssertionError(f"job {job.id} does not end: {now(job)}")


def results(job: JobRow) -> dict[str, tuple[str, str]]:
    """WorkId → (state, code) of its items."""
    return {item.work_id: (item.state.value, item.code) for item in jobs.all_items(job.id)}


def codes(job: JobRow) -> Counter[str]:
    """How many items have ended with which code; a done one by its state."""
    return Counter(code or state for state, code in results(job).values())


def assert_exact(job: JobRow) -> None:
    """The counts of the job are those of its items, and each replay belongs to one item, and the other way round."""
    job = now(job)
    counted = Counter(JobItem.objects.filter(job_id=job.id).values_list("state", flat=True))
    told = {"done": job.done, "refused": job.refused, "deferred": job.deferred, "skipped": job.skipped, "waiting": job.waiting}
    assert {state: count for state, count in told.items() if count} == dict(counted)
    assert job.total == counted.total()
    if job.kind is JobKind.REPLAY:
        made = dict(JobItem.objects.filter(job_id=job.id, state="done").values_list("work_id", "replay_work_id"))
        stored = dict(WorkItem.objects.filter(work_id__in=made.values()).values_list("replay_of_work_id", "work_id"))
        assert made == stored
