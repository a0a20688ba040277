"""What bulk jobs and their results export as a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ops_ui.console.jobs import reads as job_reads
from ops_ui.console.lists.exports import Columns, Rows, member
from ops_ui.console.lists.keyset import Cursor, Page
from projection.bulk.job_rows import ItemState


def jobs(rows: Sequence[Any]) -> Rows:
    """Of `Job`."""
    names = ("id", "kind", "state", "actor", "reason", "filter", "rate", "total", "done", "refused", "deferred", "skipped")
    times = ("created_date", "fixed_at", "finished_at")
    return Columns(rows, {name: member(name) for name in (*names, *times)})


def results(rows: Sequence[Any]) -> Rows:
    """Of `job_reads.Result`."""
    return Columns(
        rows,
        {
            "work_id": lambda one: one.item.work_id,
            "source_lane": lambda one: one.dead and one.dead.source_lane,
            "outcome": lambda one: one.item.state,
            "code": lambda one: one.item.code,
            "reason": lambda one: one.item.reason,
            "replay_work_id": lambda one: one.item.replay_work_id,
            "replay_state": lambda one: one.replay and one.replay.state,
        },
    )


def result_pages(job_id: int, state: ItemState | None) -> Callable[[Cursor | None, int], Page]:
    """The reader of a job's items, which go by their place in lane order."""
    place = job_reads.START

    def read(_cursor: Cursor | None, size: int) -> Page:
        nonlocal place
        found = job_reads.results(job_id, state, place, size)
        place = job_reads.parse(found.next or "")
        return Page(found.results, next=Cursor("after", place[1]) if found.next else None)

    return read
