"""The preview of a bulk: exact counts by the job's own decisions, and how many would run out of order."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.operations.work_filters import UnknownName, WorkFilter
from projection.bulk.job_rows import Expected, JobKind
from projection.database.clock import now as database_now
from projection.execution.worker import drain_claims
from projection.facts import PER_EVENT
from projection.models import Event, WorkItem
from projection.replay.replay import replay
from tests.support.deliveries import change, generations
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import codes, dead_letters, run_with_workers, start
from tests.support.jobs_by_hand import preview as counted
from tests.support.rows import CONTACTS, PAGES, event_row, replay_row, route_of, work_row

pytestmark = pytest.mark.usefixtures("database")


def preview(kind: JobKind = JobKind.REPLAY, **options: Any) -> Expected:
    return counted(kind, **options).expected


@pytest.mark.parametrize("page", [2, 1000])
def test_the_counts_are_those_of_the_job(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr("projection.bulk.membership.PAGE", page)
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2, 1, 3, 4, 5, 1)
        ingress.admit(change(2))
        Event.objects.filter(id=generations(4)[0].event_id).update(route_snapshot="")
        replay(generations(5)[0].work_id, actor="bob", reason="r")
        told = preview()
        job = run_with_workers(start())
    assert (told.possible, told.deferred, told.total) == (2, 2, 6)
    assert told.refused == {"active_generation": 1, "no_class_proof": 1}
    assert codes(job) == {"done": 4, **told.refused}


def test_a_preview_writes_nothing_but_itself() -> None:
    with recording() as seen:
        dead_letters(seen, 1, 2)
    with CaptureQueriesContext(connection) as asked:
        preview()
        preview(JobKind.DISCARD)
    written = [query["sql"] for query in asked if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert written
    assert all(re.match(r"(INSERT INTO|UPDATE) `_System_ConnectorJob(Item)?`\s", sql) for sql in written)


def test_a_preview_of_many_reads_in_parts_of_a_thousand() -> None:
    with recording() as seen:
        dead_letters(seen, *range(20))
    with CaptureQueriesContext(connection) as asked:
        assert preview().possible == 20
    assert len(asked) <= 22, "two units of it, BEGIN and COMMIT included"


def test_discards_are_counted_by_their_own_rules() -> None:
    one, two = (work_row(event_row(PAGES, source_id=str(n)), "dead") for n in range(2))
    work_row(event_row(PAGES, source_id="3"), "dead", discarded_at=database_now())
    replay_row(two, "pending")
    told = preview(JobKind.DISCARD)
    assert (told.possible, told.deferred, dict(told.refused), told.total) == (1, 0, {"replay_running": 1}, 2)
    assert one.state == "dead"


def test_retired_routes_and_changed_classes_are_counted() -> None:
    with recording() as seen:
        ingress = dead_letters(seen, 1, 2, on=("changed",))
        assert preview(retarget=True).possible == 2
        ingress.route(version=2, mode=PER_EVENT, on=("changed",))
        assert preview(retarget=True).refused == {"class_change": 2}
        ingress.route(version=3, kind="contact.other", on=("changed",))
        assert preview(retarget=True).refused == {"kind_change": 2}
        assert preview().possible == 2
        drain_claims()


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(UnknownName):
        preview(chosen=WorkFilter(route="nothing"))


def dead(route: Any = CONTACTS, **columns: Any) -> WorkItem:
    return work_row(event_row(route, **columns), "dead")


def test_work_after_a_newer_success_is_warned_of() -> None:
    dead()
    assert preview().after_newer == 0
    work_row(event_row(), "processed")
    assert preview().after_newer == 1
    dead()
    assert preview().after_newer == 1, "what is newer than the success is in order"


@pytest.mark.parametrize("state", ["skipped", "dead", "cancelled"])
def test_only_a_success_counts(state: str) -> None:
    dead()
    work_row(event_row(), state)
    assert preview().after_newer == 0


def test_another_source_or_kind_or_no_lane_is_no_order() -> None:
    dead()
    work_row(event_row(source_id="43"), "processed")
    work_row(event_row(route_of("other", id=9)), "processed")
    dead(PAGES, source_id="9", source_lane="")
    work_row(event_row(PAGES, source_id="9", source_lane=""), "processed")
    assert preview().after_newer == 0


def test_per_event_work_has_an_order_in_its_lane() -> None:
    dead(PAGES)
    work_row(event_row(PAGES), "processed")
    assert preview().after_newer == 1


def test_a_replay_counts_by_what_it_replays() -> None:
    oldest, middle, newest = dead(), dead(), dead()
    replay_row(replay_row(middle, "dead"), "processed")
    told = preview()
    assert (told.total, told.after_newer) == (2, 1), f"{oldest.work_id} only, not {newest.work_id}"


def test_a_dead_replay_keeps_the_place_of_its_root() -> None:
    first = dead()
    work_row(event_row(), "processed")
    replay_row(first, "dead")
    assert (preview().total, preview().after_newer) == (1, 1)


def test_an_upgraded_pack_goes_on_with_the_same_source() -> None:
    dead()
    work_row(event_row(pack_incarnation="incarnation-2"), "processed")
    assert preview().after_newer == 1
