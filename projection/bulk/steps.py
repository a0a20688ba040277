"""Steps of bulk jobs: each one small transaction, taken by compare-and-swap, so that any number of processes may try
(docs/protocol.md#bulk-jobs).

What a step does to work items and what it says about them commits together: after a kill a step was done whole or not at all, and
whoever comes next goes on. Everything is read before the transaction: only steps change a job's items and counts, so what was read
holds if the step is ours. A job's row is the first lock, before the namespace; a process that loses waits for one step at most.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Final

from projection.admission.admit import StaleIncarnation
from projection.bulk import membership
from projection.bulk.job_rows import ITEM_COLUMNS, ItemState, JobItemRow, JobKind, JobRow, JobState
from projection.bulk.jobs import find
from projection.bulk.membership import Bulk, Outcome
from projection.database.catalogue import by_id, execute, fetch
from projection.database.clock import to_db
from projection.database.outages import is_outage
from projection.database.transactions import is_conflict, run_unit
from projection.logs import log_event
from projection.refusals import Refused
from projection.replay.decision import Deferred, Replayed, not_found
from projection.replay.discard import Discarded, discard_locked
from projection.replay.replay import incarnations_of, read_work_packs, replay_locked
from projection.safe_text import error_text

ITEMS_A_STEP: Final = 100
"""Items acted on in one transaction: it holds the namespace, so it has to be short."""
ATTEMPTS: Final = 3
"""Of a step that meets conflicts, before its items are tried one by one: each may wait for a lock as long as the server lets it."""
LOCKED_IN_A_ROW: Final = 2
"""Items that wait for a lock, one after the other, before any got further: then others would as well, and the job is tried later."""
LOOK_AGAIN_SECONDS: Final = 1.0
"""Between two looks at a job that only has deferred items."""
LOOKS_A_SECOND: Final = 5000
"""Deferred items looked at in a second, at most: with many the looks are further apart."""

Act = Callable[[], Mapping[str, Outcome]]


def run_step(job: JobRow, bulk: Bulk) -> int | None:
    """Do the next step of a job that is due, or count the next part of a preview; number of items that got further.

    None: another process or an operator was faster, or the preview is counted to its end.

    Raises what is not the fault of single items, when nothing was written: the database's absence, a pack upgraded all the while.
    """
    if job.state is JobState.CANCELLED:
        return _skip_some(job, bulk)
    if job.fixed is None:
        return _fix_some(job, bulk)
    if job.state is JobState.PREVIEW:
        return None
    return _act_on(job, _next_items(job), bulk)


def _fix_some(job: JobRow, bulk: Bulk) -> int | None:
    """The next part of its members, each with what it would come to as things stand."""
    part = membership.next_part(job, bulk)
    outcomes, expected = membership.decide(job, part, bulk)
    time, last = part.after

    def unit() -> int | None:
        if not _take(job):
            return None
        added = _insert(job, part.members, outcomes) if part.members else 0
        total, known = job.total + added, job.expected.plus(expected)
        found = replace(job, total=total, expected=known, after_time=time, after_id=last)
        is_ended = part.is_last and not total and job.state is not JobState.PREVIEW
        _end(found, bulk, is_fixed=part.is_last, is_ended=is_ended)
        return added

    return run_unit("job_step", unit)


def _insert(job: JobRow, members: Mapping[int, str], outcomes: Mapping[str, Outcome]) -> int:
    """The members that are still there as waiting items; number of them."""
    told = [
        (id, one.code, one.reason) for id, work_id in members.items() if isinstance(one := outcomes[work_id], Refused | Deferred)
    ]
    parts, values = by_id(("Code", "Reason"), told) if told else ({"Code": "NULL", "Reason": "NULL"}, [])
    return execute("insert_job_items", [job.id, *values, tuple(members)], **parts)


def _skip_some(job: JobRow, bulk: Bulk) -> int | None:
    """Some of the open items of a cancelled job."""
    rows = fetch("read_open_items", job_id=job.id, limit=membership.PAGE)

    def unit() -> int | None:
        if not _take(job):
            return None
        if rows:
            execute("skip_job_items", ids=tuple(row[0] for row in rows))
        deferred = sum(row[1] == ItemState.DEFERRED for row in rows)
        known = replace(job, skipped=job.skipped + len(rows), deferred=job.deferred - deferred)
        _end(known, bulk, is_fixed=job.fixed is not None, is_ended=len(rows) < membership.PAGE)
        return len(rows)

    return run_unit("job_step", unit)


def _next_items(job: JobRow) -> list[JobItemRow]:
    """What the next step takes, of one namespace: waiting items, and once there are none the deferred ones that may go on."""
    limit = min(ITEMS_A_STEP, job.rate or ITEMS_A_STEP)
    rows = fetch("read_waiting_items", item_columns=ITEM_COLUMNS, job_id=job.id, limit=limit) if job.waiting else []
    if not rows and job.deferred:
        rows = fetch("read_released_items", item_columns=ITEM_COLUMNS, job_id=job.id, limit=limit)
    found = [JobItemRow.of(row) for row in rows]
    return [item for item in found if item.namespace == found[0].namespace]


def _act_on(job: JobRow, items: Sequence[JobItemRow], bulk: Bulk) -> int | None:
    """Act on the items together, or one by one where that fails, so that the one at fault is found and told."""
    act = _discards(job, items) if job.kind is JobKind.DISCARD else _replays(job, items, bulk)
    try:
        return run_unit("job_step", partial(_act, job, items, act, bulk), attempts=ATTEMPTS if len(items) > 1 else 1)
    except StaleIncarnation:
        return None  # an upgrade was faster; the next step reads the pack again
    except Exception as error:
        if not items or is_outage(error):
            raise
        log_event("job_step", level="warning", job_id=job.id, count=len(items), error=error_text(error))
        if len(items) > 1:
            return _one_by_one(job, items, bulk, error)
        if is_conflict(error):
            raise  # whether this item alone is locked, only another one can tell
        return _refuse(job, items[0], "failed", error_text(error), bulk)


def _one_by_one(job: JobRow, items: Sequence[JobItemRow], bulk: Bulk, failure: Exception) -> int:
    """What the items come to one by one. Raises `failure` where none got further: then it is not the fault of single ones."""
    taken, locked = 0, []
    for item in items:
        if (known := _still_due(job)) is None:
            break
        try:
            taken += _act_on(known, [item], bulk) or 0
        except Exception as error:
            if not is_conflict(error):
                raise
            locked.append(item)
            if not taken and len(locked) == LOCKED_IN_A_ROW:
                break
    if not taken:
        raise failure
    for item in locked:
        if known := _still_due(job):
            taken += _refuse(known, item, "locked", "another transaction kept it locked; try again", bulk) or 0
    return taken


def _still_due(job: JobRow) -> JobRow | None:
    known = find(job.id)
    return known if known and known.state is JobState.RUNNING and known.is_due else None


def _refuse(job: JobRow, item: JobItemRow, code: str, reason: str, bulk: Bulk) -> int | None:
    told = {item.work_id: Refused(item.work_id, code, reason)}
    return run_unit("job_step", partial(_act, job, [item], lambda: told, bulk))


def _discards(job: JobRow, items: Sequence[JobItemRow]) -> Act:
    work_ids = [item.work_id for item in items]
    return partial(discard_locked, work_ids, actor=job.actor, reason=job.reason)


def _replays(job: JobRow, items: Sequence[JobItemRow], bulk: Bulk) -> Act:
    """Replays of the items that need not wait for an earlier one of the job. No replay of the job begins but by its steps."""
    waiting = [item.id for item in items if item.state is ItemState.WAITING and item.scope_key]
    held_ids = {row[0] for row in fetch("read_held_items", ids=tuple(waiting))} if waiting else set()
    held = {item.work_id: _held(item.work_id) for item in items if item.id in held_ids}
    free = [item.work_id for item in items if item.work_id not in held]
    targets, refused = membership.aims(job, free, bulk)
    packs = read_work_packs([work_id for work_id in free if work_id not in refused])
    known = [work_id for work_id in free if work_id in packs]
    missing = {work_id: not_found(work_id) for work_id in free if work_id not in packs and work_id not in refused}
    incarnations = incarnations_of(known, packs, targets)

    def act() -> Mapping[str, Outcome]:
        done = replay_locked(items[0].namespace, known, incarnations, targets) if known else {}
        return {**held, **refused, **missing, **done}

    return act


def _held(work_id: str) -> Deferred:
    return Deferred(work_id, "same_source", "waits for an earlier one of the same record; replayed after that has ended")


def _act(job: JobRow, items: Sequence[JobItemRow], act: Act, bulk: Bulk) -> int | None:
    """The unit: take the step, act, write each item's result and the job's counts."""
    if not _take(job):
        return None
    outcomes = act() if items else {}
    ended = {item.id: _result(outcomes[item.work_id]) for item in items}
    moved = [item for item in items if ended[item.id][0] is not item.state]
    if moved:
        parts, values = by_id(("State", "Code", "Reason", "ReplayWorkId"), [(item.id, *ended[item.id]) for item in moved])
        execute("end_job_items", [*values, tuple(item.id for item in moved)], **parts)
    counts = Counter(ended[item.id][0] for item in moved)
    left = Counter(item.state for item in moved)
    known = replace(
        job,
        done=job.done + counts[ItemState.DONE],
        refused=job.refused + counts[ItemState.REFUSED],
        deferred=job.deferred + counts[ItemState.DEFERRED] - left[ItemState.DEFERRED],
    )
    done = counts[ItemState.DONE]
    if done:
        bulk.record(job, f"work.{job.kind}", done)
    wait = done / job.rate if job.rate else 0.0
    if not moved:
        wait = LOOK_AGAIN_SECONDS + job.deferred / LOOKS_A_SECOND
    _end(known, bulk, is_fixed=True, is_ended=not known.waiting and not known.deferred, wait=wait)
    return len(moved)


def _result(outcome: Outcome) -> tuple[ItemState, str, str | None, str | None]:
    """(state, code, reason, replay WorkId) of an item."""
    if isinstance(outcome, Replayed):
        return ItemState.DONE, "", None, outcome.replay_work_id
    if isinstance(outcome, Discarded):
        return ItemState.DONE, "", None, None
    return ItemState.DEFERRED if isinstance(outcome, Deferred) else ItemState.REFUSED, outcome.code, outcome.reason, None


def _take(job: JobRow) -> bool:
    return execute("take_job_step", id=job.id, step=job.step, state=job.state.value) == 1


def _end(known: JobRow, bulk: Bulk, *, is_fixed: bool, is_ended: bool, wait: float = 0.0) -> None:
    """Write what the step has come to; `wait` is seconds from its beginning to the next one's."""
    state = JobState.FINISHED if is_ended and known.state is JobState.RUNNING else known.state
    execute(
        "end_job_step",
        id=known.id,
        after_time=to_db(known.after_time),
        after_id=known.after_id,
        total=known.total,
        done=known.done,
        refused=known.refused,
        deferred=known.deferred,
        skipped=known.skipped,
        expected=json.dumps(asdict(known.expected)),
        state=state.value,
        is_fixed=int(is_fixed),
        is_ended=int(is_ended),
        wait=round(wait * 1_000_000),
    )
    if is_ended:
        bulk.record(known, "job.end", known.done)
    log_event(
        "job_step",
        job_id=known.id,
        state=state.value,
        count=known.total,
        done=known.done,
        refused=known.refused,
        deferred=known.deferred,
    )
