"""Bulk jobs: replay or discard of all dead items of a selection, durably (docs/protocol.md#bulk-jobs).

A job's membership is fixed first, then its items are acted on in lane order; `steps.py` does both in small transactions, in
whatever process takes the next one. Here is what operators do to jobs: each verb is one guarded statement, in a unit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from projection.bulk.job_rows import ITEM_COLUMNS, JOB_COLUMNS, ItemState, JobItemRow, JobKind, JobRow, JobState
from projection.database import clock
from projection.database.catalogue import execute, fetch, fetch_each
from projection.database.clock import from_db, to_db
from projection.database.transactions import run_unit
from projection.job_models import Job
from projection.logs import log_event
from projection.refusals import Refused
from projection.runtime.wake_up import notify
from projection.safe_text import storable, storable_actor

ITEMS_A_PAGE: Final = 1000
JOBS_A_PAGE: Final = 100
PREVIEWS_KEPT: Final = timedelta(days=1)
"""After that nobody confirms what was counted."""
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)

Note = Callable[[JobRow | Refused], object]


def make(kind: JobKind, filter: str, *, actor: str, rate: int, retarget: bool = False, since: datetime | None = None) -> JobRow:
    """A new preview of what `filter` (a JSON object that `connectors` reads) selects of what is dead now; nothing is counted yet.

    `rate` is items a second at most, 0 = as fast as it goes; no member died before `since`.
    """
    columns = {"kind": kind.value, "filter": filter, "actor": storable_actor(actor), "retarget": retarget, "rate": rate}
    state = JobState.PREVIEW.value
    create = partial(Job.objects.create, **columns, state=state, reason="", after_time=since, created_date=clock.now())
    found = find(run_unit("job", create).id)
    assert found is not None, "a preview is kept for a day"  # noqa: S101 - narrows the type; no input reaches it
    return found


def find(job_id: int) -> JobRow | None:
    """One job as it stands. One query."""
    rows = fetch("read_job", job_columns=JOB_COLUMNS, id=job_id)
    return JobRow.of(rows[0]) if rows else None


def newest(limit: int, before: int | None = None) -> list[JobRow]:
    """The newest confirmed jobs, with smaller ids than `before`. One query."""
    end = 2**63 - 1 if before is None else before
    return [JobRow.of(row) for row in fetch("read_jobs", job_columns=JOB_COLUMNS, before=end, limit=limit)]


def first_due() -> JobRow | None:
    """The job whose next step is due first, due or not; None: no job needs one. One query."""
    rows = fetch("read_due_job", job_columns=JOB_COLUMNS)
    return JobRow.of(rows[0]) if rows else None


def items(
    job_id: int, states: Sequence[ItemState] = tuple(ItemState), *, limit: int, after: tuple[int, int] = (-1, 0)
) -> list[JobItemRow]:
    """Items of a job in lane order, behind the place (Place, WorkItemId). One query."""
    asked = [(job_id, state.value, after[0], *after, limit) for state in states]
    found = map(JobItemRow.of, fetch_each("read_job_items", asked, item_columns=ITEM_COLUMNS))
    return sorted(found, key=lambda item: (item.place, item.work_item_id))[:limit]


def all_items(job_id: int, states: Sequence[ItemState] = tuple(ItemState)) -> Iterator[JobItemRow]:
    """Every item of a job in lane order, a page of 1,000 at a time."""
    after = (-1, 0)
    while page := items(job_id, states, limit=ITEMS_A_PAGE, after=after):
        yield from page
        after = (page[-1].place, page[-1].work_item_id)


def dead_page(after: tuple[datetime, int], through: datetime, limit: int) -> list[tuple[datetime, int]]:
    """(TerminalAt, id) of the next items behind `after` that died by `through`, oldest death first; aware times. One query."""
    rows = fetch("read_dead_page", after_time=to_db(after[0]), after_id=after[1], through=to_db(through), limit=limit)
    return [(from_db(time), item) for time, item in rows]


def postpone(job: JobRow, seconds: float) -> None:
    """No step of the job before `seconds` have passed, unless it went on since it was read."""
    run_unit("job", partial(execute, "postpone_job", id=job.id, step=job.step, wait=round(seconds * 1_000_000)))


def confirm(job_id: int, *, actor: str, reason: str, rate: int | None = None, note: Note | None = None) -> JobRow | Refused:
    """Let a preview begin, at another rate than it was made with where one is given. Refused: `not_found`, `confirmed`.

    `note` as in `run_unit`, here and in the next four.
    """
    columns = {"actor": storable_actor(actor), "reason": storable(reason), "rate": rate}
    return _change("job_start", job_id, partial(execute, "confirm_job", id=job_id, **columns), "confirmed", actor, reason, note)


def pause(job_id: int, *, actor: str, reason: str, note: Note | None = None) -> JobRow | Refused:
    """Stop a running job behind the step that it is doing, until it is resumed. Refused: `not_found`, `not_running`."""
    return _change("job_pause", job_id, partial(execute, "pause_job", id=job_id), "not_running", actor, reason, note)


def resume(job_id: int, *, actor: str, reason: str, note: Note | None = None) -> JobRow | Refused:
    """Let a paused job go on. Refused: `not_found`, `not_paused`."""
    return _change("job_resume", job_id, partial(execute, "resume_job", id=job_id), "not_paused", actor, reason, note)


def cancel(job_id: int, *, actor: str, reason: str, note: Note | None = None) -> JobRow | Refused:
    """End a job: what it did stays, what is open is skipped. Refused: `not_found`, `ended`."""
    return _change("job_cancel", job_id, partial(execute, "cancel_job", id=job_id), "ended", actor, reason, note)


def throttle(job_id: int, rate: int, *, actor: str, reason: str, note: Note | None = None) -> JobRow | Refused:
    """Another rate, from the next step on. Refused: `not_found`, `ended`; the rate that it has already is set again."""

    def change() -> int:
        changed = execute("set_job_rate", id=job_id, rate=rate)
        job = find(job_id)
        same = job is not None and job.rate == rate and job.state in (JobState.RUNNING, JobState.PAUSED)
        return changed or int(same)

    return _change("job_throttle", job_id, change, "ended", actor, reason, note)


def _change(  # noqa: PLR0917 - one caller each
    verb: str, job_id: int, change: Callable[[], int], code: str, actor: str, reason: str, note: Note | None
) -> JobRow | Refused:
    """A unit of its own: the job as it is after the change, or why it was not changed (`code`)."""

    def unit() -> JobRow | Refused:
        changed = change()
        job = find(job_id)
        if job is None:
            return Refused(str(job_id), "not_found", f"there is no job {job_id}")
        return job if changed else Refused(str(job_id), code, f"job {job_id} is {job.state}")

    answer = run_unit("job", unit, note=note)
    if isinstance(answer, JobRow):
        log_event(verb, job_id=job_id, actor=actor, reason=reason)
        notify("route")
    return answer


def drop(job_id: int) -> bool:
    """Remove a preview. False: it was confirmed, or is gone."""
    if not run_unit("job", partial(execute, "end_preview", id=job_id)):
        return False
    _remove(job_id)
    return True


def prune_jobs(before: datetime, *, dry_run: bool = False) -> int:
    """Remove jobs that ended before `before` (aware) and previews that nobody confirmed, in small transactions; number of jobs."""
    unconfirmed = clock.now() - PREVIEWS_KEPT
    if dry_run:
        # Two counts, each a range of ux_job_finished: joined by OR they would read the whole table.
        old = Job.objects.filter(finished_at=None, state=JobState.PREVIEW.value, created_date__lt=unconfirmed)
        return Job.objects.filter(finished_at__lt=before).count() + old.count()
    total = 0
    while ids := [row[0] for row in fetch("read_old_previews", before=to_db(unconfirmed), limit=JOBS_A_PAGE)]:
        total += sum(map(drop, ids))
    while ids := [row[0] for row in fetch("read_ended_jobs", before=to_db(before), limit=JOBS_A_PAGE)]:
        total += sum(map(_remove, ids))
    return total


def _remove(job_id: int) -> int:
    while item_ids := tuple(row[0] for row in fetch("read_item_ids", job_id=job_id, limit=ITEMS_A_PAGE)):
        run_unit("prune", partial(execute, "delete_job_items", ids=item_ids))
    return run_unit("prune", partial(execute, "delete_job", id=job_id))
