"""Bulk jobs as operators know them: a filter over dead letters, verbs with their audit entries, and what does the steps.

Every replay and discard of several dead letters is one, whoever asks for it: `make` a preview, `count` it part by part, `confirm` it.
Then routers do its steps, and whoever confirmed it may do them as well: `run` until it has ended, or `hurry` where it is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import sleep
from typing import Final

from django.db import DatabaseError
from django.db.models import QuerySet

from connectors import audit_log
from connectors.operations.retarget import current_targets, present, without_target
from connectors.operations.work_filters import WorkFilter, dead_items, from_json, to_json
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobItemRow, JobKind, JobRow, JobState
from projection.bulk.membership import PAGE, Outcome
from projection.bulk.steps import ITEMS_A_STEP, run_step
from projection.database.outages import is_outage
from projection.database.transactions import NO_SUCH_TABLE, error_code
from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.decision import Deferred, Replayed, Target
from projection.replay.discard import Discarded, preview_discards
from projection.replay.preview import preview_replays
from projection.safe_text import error_text

DEFAULT_RATE: Final = 200
"""Items a second of a job that names no rate: 20,000 take under two minutes and leave admission most of the namespace's time."""
HIGHEST_RATE: Final = 100_000
"""Items a second; more than any database does, so that a slip of the finger is noticed."""
POSTPONED_SECONDS: Final = 15.0
"""Until a job is tried again whose step failed through no fault of its items."""
HURRIED_STEPS: Final = 4
"""Of a short job: a step acts on items of one namespace."""
LONGEST_SLEEP_SECONDS: Final = 1.0


def make(kind: JobKind, chosen: WorkFilter, *, actor: str, retarget: bool = False) -> JobRow:
    """A new job in its first state, a preview of all dead items that the filter selects now. Raises UnknownName.

    ValueError: the filter names more WorkIds than one part of a preview counts.
    """
    dead_items(chosen, unreplayed=False)
    if len(chosen.work) > PAGE:
        raise ValueError(f"{len(chosen.work):,} WorkIds are too many for one job; give at most {PAGE:,}, or a filter")
    rate = 0 if chosen.work else DEFAULT_RATE
    return jobs.make(kind, to_json(chosen), actor=actor, rate=rate, retarget=retarget, since=chosen.since)


def count(job: JobRow) -> JobRow:
    """The preview with its next part counted, by this process or another one: bounded work, whatever the job. Raises UnknownName."""
    run_step(job, DeadLetters())
    return jobs.find(job.id) or job


def count_all(job: JobRow) -> JobRow:
    """The preview, counted to its end unless it is confirmed or dropped meanwhile."""
    while job.state is JobState.PREVIEW and job.fixed is None:
        before, job = job, count(job)
        if job.step == before.step:  # it is gone
            break
    return job


def confirm(job_id: int, *, actor: str, reason: str, rate: int | None = None) -> JobRow | Refused:
    """As `jobs.confirm`: the preview begins as a job of whoever confirms it. Raises ValueError for a rate that is none."""
    check_rate(rate)

    def note(answer: JobRow | Refused) -> None:
        if isinstance(answer, JobRow):
            detail = {"kind": answer.kind.value, "filter": answer.filter, "rate": answer.rate}
            audit_log.record(actor, "job.start", _target(answer.id), reason, detail=detail)

    return jobs.confirm(job_id, actor=actor, reason=reason, rate=rate, note=note)


def check_rate(rate: int | None) -> None:
    """Raises ValueError for a rate that is none."""
    if rate is not None and not 0 <= rate <= HIGHEST_RATE:
        raise ValueError(
            f"{rate} is not a valid rate; write a whole number of items per second up to {HIGHEST_RATE}, or 0 for no limit"
        )


def results(job: JobRow) -> Iterator[Outcome]:
    """What each item has come to (of a preview: would come to), in lane order; then the named ones that are no dead letters.

    Deferred is all that the job goes on with.
    """
    for item in jobs.all_items(job.id):
        yield _outcome(job, item)
    yield from left_out(job)


def left_out(job: JobRow) -> Iterable[Outcome]:
    """Why WorkIds that its filter names are no members of the job."""
    names = from_json(job.filter).work
    members = {item.work_id for item in jobs.all_items(job.id)} if names else set()
    missing = [name for name in names if name not in members]
    return (preview_replays(missing)[0] if job.kind is JobKind.REPLAY else preview_discards(missing)).values()


def _outcome(job: JobRow, item: JobItemRow) -> Outcome:
    would_be_done = job.state is JobState.PREVIEW and not item.code
    if item.state is ItemState.DONE or would_be_done:
        is_replay = job.kind is JobKind.REPLAY
        return Replayed(item.work_id, item.replay_work_id or "") if is_replay else Discarded(item.work_id)
    if item.state is ItemState.REFUSED or (job.state is JobState.PREVIEW and item.code != "same_source"):
        return Refused(item.work_id, item.code, item.reason or "")
    return Deferred(item.work_id, item.code or item.state, item.reason or f"job {job.id} continues with it")


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
    check_rate(rate)
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
    """What jobs over dead letters need (`membership.Bulk`)."""

    def members(self, job: JobRow) -> QuerySet[WorkItem]:
        return dead_items(from_json(job.filter), unreplayed=job.kind is JobKind.REPLAY)

    def is_named(self, job: JobRow) -> bool:
        return bool(from_json(job.filter).work)

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


def hurry(job: JobRow) -> None:
    """Act in this very process on a job of one step's worth of items, so that it need not wait for a router; on no other."""
    for _ in range(HURRIED_STEPS):
        known = jobs.find(job.id)
        if known is None or known.total > ITEMS_A_STEP or not known.is_due:
            return
        _step(known)


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
