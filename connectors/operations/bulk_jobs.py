"""Bulk jobs as operators know them: a filter over dead letters, verbs with their audit entries, and what does the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import sleep
from typing import Final

from django.db import DatabaseError, transaction
from django.db.models import QuerySet

from connectors import audit_log
from connectors.operations.retarget import current_targets, present, without_target
from connectors.operations.work_filters import WorkFilter, dead_items, from_json, to_json
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind, JobRow
from projection.bulk.steps import PAGE, run_step
from projection.database.outages import is_outage
from projection.database.transactions import NO_SUCH_TABLE, error_code
from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.replay import Target
from projection.safe_text import error_text

DEFAULT_RATE: Final = 200
"""Items a second of a job that names no rate: 20,000 take under two minutes and leave admission most of the namespace's time."""
HIGHEST_RATE: Final = 100_000
"""Items a second; more than any database does, so that a slip of the finger is noticed."""
POSTPONED_SECONDS: Final = 15.0
"""Until a job is tried again whose step failed through no fault of its items."""
LONGEST_SLEEP_SECONDS: Final = 1.0


def start(
    kind: JobKind, chosen: WorkFilter, *, actor: str, reason: str, rate: int = DEFAULT_RATE, retarget: bool = False
) -> JobRow:
    """A new job for all dead items that the filter selects now, with its audit entry. Raises UnknownName.

    ValueError: the filter names too many WorkIds for one step to fix.
    """
    dead_items(chosen, unreplayed=False)
    if len(chosen.work) > PAGE:
        raise ValueError(f"a job names at most {PAGE} items by their WorkIds, not {len(chosen.work)}")
    text = to_json(chosen)
    with transaction.atomic():
        job = jobs.start(kind, text, actor=actor, reason=reason, rate=rate, retarget=retarget, since=chosen.since)
        audit_log.record(actor, "job.start", _target(job.id), reason, detail={"kind": kind.value, "filter": text, "rate": rate})
    return job


def pause(job_id: int, *, actor: str, reason: str) -> JobRow | Refused:
    """As `jobs.pause`."""
    return jobs.pause(job_id, actor=actor, reason=reason, note=_note("job.pause", actor, reason))


def resume(job_id: int, *, actor: str, reason: str) -> JobRow | Refused:
    """As `jobs.resume`."""
    return jobs.resume(job_id, actor=actor, reason=reason, note=_note("job.resume", actor, reason))


def cancel(job_id: int, *, actor: str, reason: str) -> JobRow | Refused:
    """As `jobs.cancel`."""
    return jobs.cancel(job_id, actor=actor, reason=reason, note=_note("job.cancel", actor, reason))


def throttle(job_id: int, rate: int, *, actor: str, reason: str) -> JobRow | Refused:
    """As `jobs.throttle`. Raises ValueError for a rate that is none."""
    if not 0 <= rate <= HIGHEST_RATE:
        raise ValueError(f"{rate} is not a rate; write a whole number of items per second up to {HIGHEST_RATE}, 0 for no limit")
    return jobs.throttle(job_id, rate, actor=actor, reason=reason, note=_note("job.throttle", actor, reason))


def _note(action: str, actor: str, reason: str) -> jobs.Note:
    """Writes the audit entry, in the verb's unit; none for what was refused."""

    def note(answer: JobRow | Refused) -> None:
        if isinstance(answer, JobRow):
            audit_log.record(actor, action, _target(answer.id), reason, detail={"rate": answer.rate})

    return note


def _target(job_id: int) -> str:
    return f"job {job_id}"


class DeadLetters:
    """What the steps of jobs over dead letters need (`job_steps.Bulk`)."""

    def members(self, job: JobRow) -> QuerySet[WorkItem]:
        return dead_items(from_json(job.filter), unreplayed=job.kind is JobKind.REPLAY)

    def named(self, job: JobRow) -> Sequence[int] | None:
        chosen = from_json(job.filter)
        return list(dead_items(chosen, unreplayed=False).values_list("id", flat=True)) if chosen.work else None

    def targets(self, work_ids: Sequence[str]) -> Mapping[str, Target | Refused]:
        targets = current_targets(work_ids)
        aims = present(targets)
        return {work_id: aims.get(work_id) or without_target(work_id, targets) for work_id in work_ids}

    def record(self, job: JobRow, action: str, count: int) -> None:
        counts = {"done": job.done, "refused": job.refused, "skipped": job.skipped} if action == "job.end" else {}
        audit_log.record(job.actor, action, _target(job.id), job.reason, count=count, detail=counts)


class JobRunner:
    """Does the steps of whatever jobs are due, one at a time, between the turns of a resident loop."""

    next_due: float | None = None
    """Seconds until the next step, as of the last `step` that found none due; None: no job needs one."""

    def step(self) -> int:
        """One step of the job that is due for longest; 0 when none is. One statement when no job needs a step.

        A job whose step fails is tried again later, and the loop's own work goes on; only the database's absence is raised.
        """
        job = _first_due()
        self.next_due = job.due_in if job else None
        if job is None or not job.is_due:
            return 0
        _step(job)
        return 1


def _step(job: JobRow) -> None:
    """One step of a job that is due; tried again later where it fails. Raises the database's absence."""
    try:
        run_step(job, DeadLetters())
    except Exception as error:
        if is_outage(error):
            raise
        log_event("job_step", level="error", job_id=job.id, seconds=POSTPONED_SECONDS, error=error_text(error))
        jobs.postpone(job, POSTPONED_SECONDS)


def _first_due() -> JobRow | None:
    try:
        return jobs.first_due()
    except DatabaseError as error:
        if error_code(error) == NO_SUCH_TABLE:  # a schema from before jobs has none that could be due
            return None
        raise


def hurry(job_id: int, steps: int) -> None:
    """Do up to so many steps of a job that are due, in this very process: a small job need not wait for a router."""
    for _ in range(steps):
        job = jobs.find(job_id)
        if job is None or not job.is_due:
            return
        _step(job)


def run(job_id: int) -> JobRow | None:
    """Do a job's steps here, beside whoever else does some, until it is paused, has ended, or only waits for replays to end.

    None: there is no such job. Raises what a step raises; the job itself goes on wherever a router runs.
    """
    while True:
        job = jobs.find(job_id)
        if job is None or job.due_in is None:
            return job
        if not job.is_due:
            sleep(min(LONGEST_SLEEP_SECONDS, job.due_in))
        elif run_step(job, DeadLetters()) == 0 and job.fixed and not job.waiting:
            return jobs.find(job_id)
