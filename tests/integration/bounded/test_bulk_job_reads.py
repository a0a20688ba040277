"""What a step of a bulk job reads grows with its hundred items, not with the job, its scopes or the history beside it."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.operations.bulk_jobs import DeadLetters
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobKind, JobState
from projection.bulk.steps import run_step
from projection.database import clock
from projection.job_models import Job, JobItem
from projection.models import WorkItem
from tests.support import factories
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.jobs_by_hand import now, preview, start
from tests.support.rows import event_row, work_row
from tests.support.scale import size
from tests.support.server_work import refresh_statistics, server_work

pytestmark = pytest.mark.usefixtures("database")

MANY = size(5_000, 20_000)
TABLES = ("_System_ConnectorJob", "_System_ConnectorJobItem", "_System_ConnectorWorkItem", "_System_ConnectorEvent")


def dead_of_one_source(count: int, **columns: str) -> WorkItem:
    """Dead generations of one source, selecting one event (nothing reads it here)."""
    pack = factories.install("generic")
    route = factories.route(pack, "p", mode="projection")
    item = work_row(event_row(route, pack_incarnation=pack.incarnation), "dead")
    copy_rows(item, count - 1, WorkId=f"CONCAT('csp:', {hashed('w')})", LanePosition="t.LanePosition + 1 + n", **columns)
    return item


def job_of(count: int, state: str, **columns: str) -> Job:
    """A running job with items of these dead ones, all of a state."""
    made = Job.objects.create(
        kind=JobKind.REPLAY, filter="{}", reason="", actor="ann", rate=0, state=JobState.RUNNING, created_date=clock.now(),
        next_step_at=clock.now(), fixed_at=clock.now(), total=count, deferred=count if state == "deferred" else 0,
    )  # fmt: skip
    dead = WorkItem.objects.filter(state="dead").earliest("id")
    row = JobItem.objects.create(
        job_id=made.id, place=0, work_item_id=dead.id, work_id=dead.work_id, namespace="default",
        scope_key=dead.source_scope_key, state=state,
    )  # fmt: skip
    copy_rows(row, count - 1, Place="n + 1", WorkItemId=f"{dead.id} + n + 1", WorkId=f"CONCAT('csp:', {hashed('w')})", **columns)
    refresh_statistics(*TABLES)
    return made


def rows_of_a_step(made: Any) -> int:
    known = now(made)
    with server_work() as work:
        assert run_step(known, DeadLetters()) is not None
    return work.rows_read


def test_a_step_beside_many_waiting_items() -> None:
    dead_of_one_source(MANY)
    assert rows_of_a_step(job_of(MANY, "waiting")) < 20 * 100


def test_a_step_beside_many_deferred_items_of_the_same_source() -> None:
    dead_of_one_source(MANY)
    made = job_of(MANY, "deferred")
    JobItem.objects.filter(job_id=made.id, place__gte=MANY - 100).update(state="waiting")
    Job.objects.filter(id=made.id).update(deferred=MANY - 100)
    assert rows_of_a_step(made) < 20 * 100
    assert (now(made).waiting, now(made).deferred) == (0, MANY)


def test_deferred_items_that_may_go_on_are_found_without_reading_all() -> None:
    dead_of_one_source(MANY)
    assert rows_of_a_step(job_of(MANY, "deferred")) < 20 * 100


def test_deferred_items_that_all_wait_are_read_once_and_then_seldom() -> None:
    item = dead_of_one_source(MANY)
    made = job_of(MANY, "deferred")
    replay = work_row(event_row(source_id="9"), source_scope_key=item.source_scope_key)
    JobItem.objects.filter(job_id=made.id, place=0).update(replay_work_id=replay.work_id)
    assert rows_of_a_step(made) < 8 * MANY
    due = now(made).due_in
    assert due is not None
    assert due > MANY / 5_000 - 0.5


SOURCES_APART = {"LaneKey": hashed("l"), "SourceScopeKey": hashed("s")}


@pytest.mark.parametrize(("apart", "of_the_sources"), [(SOURCES_APART, 0), ({}, 3 * MANY)])
def test_a_part_of_members_beside_many_dead_and_ended_items(
    monkeypatch: pytest.MonkeyPatch, apart: dict[str, str], of_the_sources: int
) -> None:
    """Whether newer work of a source has succeeded is asked of the dead items of the sources of a part: each with its replay."""
    monkeypatch.setattr("projection.bulk.membership.PAGE", 100)
    item = dead_of_one_source(MANY, TerminalAt="t.TerminalAt - INTERVAL n SECOND", **apart)
    copy_rows(
        item, MANY, WorkId=f"CONCAT('csp:', {hashed('p')})", State="'processed'", TerminalAt="t.TerminalAt - INTERVAL n SECOND"
    )
    refresh_statistics(*TABLES)
    made = start()
    for _ in range(3):
        assert rows_of_a_step(made) < 20 * 100 + of_the_sources
    assert now(made).total == 300


def test_the_next_job_is_found_beside_many_ended_ones() -> None:
    made = Job.objects.create(
        kind=JobKind.REPLAY, filter="{}", reason="", actor="ann", rate=0, state=JobState.FINISHED, created_date=clock.now(),
        finished_at=clock.now(),
    )  # fmt: skip
    copy_rows(made, 1_000)
    refresh_statistics(*TABLES)
    with server_work() as work:
        assert jobs.first_due() is None
    assert work.rows_read < 5


def test_the_order_of_a_preview_is_found_at_the_end_of_a_long_lane() -> None:
    dead = work_row(event_row(), "dead")
    done = work_row(event_row(), "processed")
    copy_rows(done, MANY, WorkId=f"CONCAT('csp:', {hashed('d')})", LanePosition="t.LanePosition + 1 + n")
    copy_rows(
        done, MANY, WorkId=f"CONCAT('csp:', {hashed('e')})", LanePosition="t.LanePosition + 1 + n", LaneKey=hashed("l"),
        SourceScopeKey=hashed("s"),
    )  # fmt: skip
    refresh_statistics(*TABLES)
    with server_work() as work:
        assert preview().expected.after_newer == 1
    assert work.rows_read < 200
    assert dead.state == "dead"


@pytest.mark.parametrize("states", [[ItemState.DONE], list(ItemState)])
def test_a_page_of_results_reads_the_page(states: list[ItemState]) -> None:
    """Also in the middle of the only job that there is, whatever the statistics make of it."""
    dead_of_one_source(1)
    job = job_of(MANY, "done")
    with server_work() as work:
        page = jobs.items(job.id, states, limit=100, after=(MANY // 2, 0))
    assert [page[0].place, page[-1].place, len(page)] == [MANY // 2, MANY // 2 + 99, 100]
    assert work.rows_read <= 110
