"""What a bulk job is about is fixed at its start: everything dead that its filter selects, whatever dies later."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from connectors.models import Pack, Route
from connectors.operations.work_filters import UnknownName, WorkFilter, from_json, to_json
from projection.bulk import membership
from projection.bulk.job_rows import JobKind, JobState
from projection.database.clock import now as database_now
from projection.job_models import Job, JobItem
from projection.models import WorkItem
from tests.support import factories
from tests.support.jobs_by_hand import EVERYTHING, fixed, now, run, start, step
from tests.support.rows import PAGES, event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def pack(database: None) -> Pack:
    return factories.install("generic")


def dead(pack: Pack, source_id: str, route: str = "r", **columns: Any) -> WorkItem:
    event = columns.pop("event", {})
    facts = factories.route_facts(pack, route)
    facts = replace(
        facts, id=Route.objects.filter(route_key=route).values_list("id", flat=True).first() or factories.route(pack, route).id
    )
    return work_row(event_row(facts, source_id=source_id, pack_incarnation=pack.incarnation, **event), "dead", **columns)


def members(kind: JobKind = JobKind.REPLAY, chosen: WorkFilter = EVERYTHING) -> set[str]:
    job = fixed(start(kind, chosen))
    found = list(JobItem.objects.filter(job_id=job.id).values_list("work_id", flat=True))
    assert len(found) == job.total
    return set(found)


def test_members_are_the_dead_that_nobody_discarded_or_replayed(pack: Pack) -> None:
    one = dead(pack, "1")
    dead(pack, "2", discarded_at=database_now())
    again = dead(pack, "3")
    replay_row(again, "processed")
    died_twice = dead(pack, "4")
    leaf = replay_row(died_twice, "dead")
    work_row(event_row(PAGES, source_id="5"), "pending")
    assert members() == {one.work_id, leaf.work_id}
    assert members(JobKind.DISCARD) == {one.work_id, again.work_id, died_twice.work_id, leaf.work_id}


@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_a_large_table_is_asked_page_by_page(pack: Pack, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(membership, "PAGE", page)
    moment = database_now() - timedelta(minutes=1)
    items = [dead(pack, str(n), terminal_at=moment if n < 3 else moment + timedelta(seconds=n)) for n in range(6)]
    assert members() == {item.work_id for item in items}


def test_what_dies_after_the_start_is_no_member_although_the_membership_is_fixed_later(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "PAGE", 1)
    first, second = dead(pack, "1"), dead(pack, "2")
    job = start()
    step(job)
    dead(pack, "3")
    assert fixed(job).total == 2
    assert set(JobItem.objects.values_list("work_id", flat=True)) == {first.work_id, second.work_id}


def test_places_are_those_of_the_lanes(pack: Pack) -> None:
    items = [dead(pack, "1") for _ in range(3)]
    fixed(start())
    rows = JobItem.objects.order_by("place").values_list("work_id", "place", "namespace", "scope_key")
    assert list(rows) == [(item.work_id, item.lane_position, "default", None) for item in items]


def test_the_scope_is_that_of_projections(pack: Pack) -> None:
    facts = factories.route(pack, "p", mode="projection")
    item = work_row(event_row(facts, pack_incarnation=pack.incarnation), "dead")
    fixed(start())
    assert JobItem.objects.get().scope_key == item.source_scope_key


def test_each_filter_selects(pack: Pack) -> None:
    error = "ValueError: order 12 is closed: 100 %s_ off"
    one = dead(pack, "1", "r1", last_error=error)
    old = dead(pack, "2", "r2", terminal_at=database_now() - timedelta(days=3))
    other = dead(factories.install("github"), "3", "r3")
    assert members(chosen=WorkFilter(route="r1")) == {one.work_id}
    assert members(chosen=WorkFilter(pack="github")) == {other.work_id}
    assert members(chosen=WorkFilter(error="100 %s_ off")) == {one.work_id}
    assert members(chosen=WorkFilter(until=database_now() - timedelta(days=2))) == {old.work_id}
    assert members(chosen=WorkFilter(since=old.terminal_at)) == {one.work_id, old.work_id, other.work_id}
    assert members(chosen=WorkFilter(since=old.terminal_at + timedelta(microseconds=1))) == {one.work_id, other.work_id}


def test_a_source_is_matched_exactly_and_without_a_limit(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.operations.work_filters.ROWS_OF_A_SOURCE", 1)
    items = [dead(pack, "a:1") for _ in range(3)]
    dead(pack, "a:1 ")
    dead(pack, "A:1")
    laneless = dead(pack, "a:1", event={"source_lane": "elsewhere"})
    wanted = {item.work_id for item in items}
    assert members(chosen=WorkFilter(source="a:1")) == wanted | {laneless.work_id}
    assert members(chosen=WorkFilter(source="contact:a:1")) == wanted | {laneless.work_id}
    assert members(chosen=WorkFilter(source="elsewhere")) == {laneless.work_id}
    assert members(chosen=WorkFilter(source="elsewhere ")) == set()
    assert members(chosen=WorkFilter(source="contact:a:1 ")) != wanted


def test_an_unknown_name_starts_nothing(pack: Pack) -> None:
    with pytest.raises(UnknownName, match="there is no route 'nothing'"):
        start(chosen=WorkFilter(route="nothing"))
    assert not Job.objects.exists()


def test_a_job_about_nothing_ends_at_once(pack: Pack) -> None:
    job = run(start())
    assert (job.state, job.total, job.due_in) == (JobState.FINISHED, 0, None)
    assert now(job).finished is not None


def test_a_filter_survives_as_text() -> None:
    moment = database_now()
    chosen = WorkFilter(route="r", pack="p", flow="f", source="s'", error="é", since=moment, until=moment + timedelta(1))
    assert from_json(to_json(chosen)) == chosen
    assert from_json(to_json(EVERYTHING)) == EVERYTHING
