"""The audit names what is wrong with work items: one planted violation for each invariant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from projection.database.clock import now
from projection.integrity.invariants import AuditReport, audit
from projection.models import Event, LaneHold, WorkItem
from tests.support.rows import CONTACTS, PAGES, event_row, replay_event_row, replay_row, route_of, work_row

pytestmark = pytest.mark.usefixtures("database")

LATER = timedelta(hours=1)


def found_by(invariant: str, report: AuditReport) -> list[str]:
    return [violation.id for violation in report.violations if violation.invariant == invariant]


def only(invariant: str, report: AuditReport) -> str:
    """The id of the one violation, which must be of `invariant`."""
    assert [found.invariant for found in report.violations] == [invariant], report.violations
    return report.violations[0].id


def change(item: WorkItem, **columns: Any) -> None:
    WorkItem.objects.filter(id=item.id).update(**columns)


@pytest.fixture
def no_state_check() -> Iterator[None]:
    """A server that does not check constraints (an older installation, or TiDB by default)."""
    table = WorkItem._meta.db_table
    (constraint,) = [c for c in WorkItem._meta.constraints if c.name == "ck_work_terminal"]
    with connection.cursor() as cursor:
        there = "ck_work_terminal" in connection.introspection.get_constraints(cursor, table)
    with connection.schema_editor() as editor:
        if there:
            editor.remove_constraint(WorkItem, constraint)
    try:
        yield
    finally:
        WorkItem.objects.all().delete()
        with connection.schema_editor() as editor:
            if there:
                editor.add_constraint(WorkItem, constraint)


def test_an_active_key_of_another_projection_is_found() -> None:
    item = work_row(event_row())
    change(item, projection_active_key="csp:other")
    assert only("active_key", audit()) == item.work_id


def test_two_active_generations_are_found() -> None:
    work_row(event_row(), "processing")
    second = work_row(event_row(), "pending", projection_active_key="csp:other")
    assert found_by("one_active", audit()) == [second.work_id]


def test_two_successors_are_found() -> None:
    work_row(event_row(), "processing")
    work_row(event_row(), "blocked")
    second = work_row(event_row(), "blocked")
    assert only("one_successor", audit()) == second.work_id


def test_a_successor_without_an_active_generation_is_found() -> None:
    work_row(event_row(), "processed")
    lost = work_row(event_row(), "blocked", projection_active_key=None)
    assert only("successor_alone", audit()) == lost.work_id


@pytest.mark.parametrize("state", ["pending", "retry"])
def test_a_successor_that_could_run_is_found(state: str) -> None:
    work_row(event_row(), "processing")
    successor = work_row(event_row(), "blocked")
    change(successor, state=state)
    assert found_by("successor_inactive", audit()) == [successor.work_id]


def test_a_successor_that_selects_nothing_newer_is_found() -> None:
    older, newer = event_row(), event_row()
    work_row(newer, "processing")
    successor = work_row(older, "blocked")
    assert only("successor_inactive", audit()) == successor.work_id


def test_a_repaired_older_event_may_queue_behind_a_replay() -> None:
    dead = work_row(event_row(), "dead")
    repaired = event_row()
    replay_row(dead, "processing")
    work_row(repaired, "blocked")
    assert audit().ok


def test_a_replay_of_something_that_is_gone_is_found() -> None:
    replay = replay_row(work_row(event_row(), "dead"))
    change(replay, replay_of_work_id="csp:gone")
    assert only("replay_lineage", audit()) == replay.work_id


def test_a_replay_of_something_that_did_not_die_is_found() -> None:
    replay = replay_row(work_row(event_row(), "processed"))
    assert only("replay_lineage", audit()) == replay.work_id


def test_a_replay_of_another_class_is_found() -> None:
    dead = work_row(event_row(PAGES), "dead")
    replay = replay_row(dead)
    change(replay, execution_class="projection", projection_key="csp:1", projection_active_key="csp:1")
    assert found_by("replay_lineage", audit()) == [replay.work_id]


@pytest.fixture
def no_unique_replay() -> Iterator[None]:
    """An older installation's table, where the unique key is gone."""
    table = WorkItem._meta.db_table
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table)
        (name,) = [n for n, c in constraints.items() if c["unique"] and [x.lower() for x in c["columns"]] == ["replayofworkid"]]
        cursor.execute(f"ALTER TABLE `{table}` DROP INDEX `{name}`")
    try:
        yield
    finally:
        WorkItem.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE `{table}` ADD UNIQUE INDEX `{name}` (`ReplayOfWorkId`)")


def test_a_second_replay_of_one_item_is_found(no_unique_replay: None) -> None:
    dead = work_row(event_row(), "dead")
    replay_row(dead, "processed")
    twin = replay_row(dead, "processed")
    assert only("replay_lineage", audit()) == twin.work_id


def test_a_cycle_of_replays_is_found() -> None:
    first = work_row(event_row(PAGES), "dead")
    second = replay_row(first, "dead")
    change(first, replay_of_work_id=second.work_id)
    assert found_by("replay_lineage", audit()) == [first.work_id]


def test_a_class_that_does_not_fit_the_projection_key_is_found() -> None:
    item = work_row(event_row(), execution_class="per_event")
    assert only("execution_class", audit()) == item.work_id


@pytest.mark.parametrize(
    "wrong",
    [
        {"lane_ordinal": 999, "lane_position": 1},
        {"delivery_sequence": 7},
        {"event_created_date": F("event_created_date") + LATER},
        {"event_created_date": F("event_created_date") - timedelta(seconds=1)},
        {"namespace": "other"},
        {"event_id": 10**9},
    ],
)
def test_a_generation_that_is_not_its_selected_event_is_found(wrong: dict[str, Any]) -> None:
    item = work_row(event_row(), "processing")
    change(item, **wrong)
    assert found_by("selected_event", audit()) == [item.work_id]


def test_an_order_snapshot_in_whole_seconds_is_right() -> None:
    """Of a column that an older installation left as it was."""
    item = work_row(event_row(), "processing")
    change(item, event_created_date=item.event_created_date.replace(microsecond=0))
    assert audit().ok


@pytest.mark.parametrize(("state", "found"), [("processing", True), ("processed", True), ("pending", False)])
def test_a_claimed_item_whose_event_an_old_binary_may_still_run_is_found(state: str, found: bool) -> None:
    event = event_row(PAGES, executor_owner="event", status="pending")
    item = work_row(event, state)
    change(item, claimed_at=None if state == "pending" else now())
    assert found_by("selected_event", audit()) == ([item.work_id] if found else [])


def test_a_generation_that_selects_an_event_of_another_projection_is_found() -> None:
    other = event_row(source_id="43")
    work_row(other, "processed")
    item = work_row(event_row(), "processing")
    change(item, event_id=other.id, lane_ordinal=other.enqueue_ordinal)
    assert found_by("selected_event", audit()) == [item.work_id]


def test_an_ordinary_item_that_selects_a_replay_event_is_found() -> None:
    event = event_row(PAGES)
    work_row(event, "dead")
    item = work_row(replay_event_row(event), "processed")
    assert found_by("selected_event", audit()) == [item.work_id]


def test_a_replay_that_selects_the_dead_event_itself_is_found() -> None:
    dead = work_row(event_row(PAGES), "dead")
    again = work_row(event_row(PAGES), work_id="evt:again", replay_of_work_id=dead.work_id)
    assert found_by("selected_event", audit()) == [again.work_id]


def test_a_terminal_item_without_terminal_time_is_found(no_state_check: None) -> None:
    item = work_row(event_row(), "processed")
    change(item, terminal_at=None)
    assert only("terminal_state", audit()) == item.work_id


def test_a_live_item_with_a_terminal_time_is_found(no_state_check: None) -> None:
    item = work_row(event_row())
    change(item, terminal_at=now())
    assert only("terminal_state", audit()) == item.work_id


def test_an_unknown_state_is_found(no_state_check: None) -> None:
    item = work_row(event_row())
    change(item, state="running")
    assert only("terminal_state", audit()) == item.work_id


@pytest.mark.parametrize(
    "kept", [{"lane_holder_key": "a" * 64}, {"lease_token": "t"}, {"lease_expires_at": now}, {"discarded_at": now}]
)
def test_a_terminal_item_that_keeps_what_the_handoff_clears_is_found(kept: dict[str, Any]) -> None:
    item = work_row(event_row(), "processed")
    change(item, **{column: value() if callable(value) else value for column, value in kept.items()})
    assert only("terminal_state", audit()) == item.work_id


def test_a_terminal_item_that_keeps_the_active_key_is_found() -> None:
    item = work_row(event_row(), "dead")
    change(item, projection_active_key=item.projection_key)
    assert only("terminal_state", audit()) == item.work_id


def test_a_discarded_dead_item_is_right() -> None:
    work_row(event_row(), "dead", discarded_at=now())
    assert audit().ok


@pytest.mark.parametrize("lost", ["lease_token", "lease_expires_at", "claimed_at"])
def test_processing_without_a_whole_lease_is_found(lost: str) -> None:
    item = work_row(event_row(), "processing")
    change(item, **{lost: None})
    assert only("lease", audit()) == item.work_id


def test_a_waiting_item_that_keeps_a_lease_is_found() -> None:
    item = work_row(event_row(), "retry", lease_token="t")
    assert only("lease", audit()) == item.work_id


def test_a_claimed_item_that_became_pending_again_is_found() -> None:
    item = work_row(event_row(), claimed_at=now())
    assert only("lease", audit()) == item.work_id


def test_a_retry_that_was_never_claimed_is_found() -> None:
    item = work_row(event_row(), "retry", claimed_at=None)
    assert only("lease", audit()) == item.work_id


def test_two_generations_with_one_selection_are_found() -> None:
    event = event_row()
    work_row(event, "processed")
    second = work_row(event, "processed", work_id="csp:second")
    assert only("ranges_distinct", audit()) == second.work_id


@pytest.mark.parametrize("state", ["processing", "retry"])
def test_a_running_item_that_does_not_hold_its_lane_is_found(state: str) -> None:
    item = work_row(event_row(), state, lane_holder_key=None)
    assert only("lane_holder", audit()) == item.work_id


def test_a_holder_of_another_lane_is_found() -> None:
    item = work_row(event_row(), "processing", lane_holder_key="b" * 64)
    assert only("lane_holder", audit()) == item.work_id


def test_a_pending_item_that_holds_its_lane_is_found() -> None:
    item = work_row(event_row())
    change(item, lane_holder_key=item.lane_key)
    assert only("lane_holder", audit()) == item.work_id


def test_two_running_items_of_one_lane_are_found() -> None:
    work_row(event_row(PAGES), "processing")
    second = work_row(event_row(PAGES), "retry", lane_holder_key="b" * 64)
    assert found_by("one_holder", audit()) == [second.work_id]


def test_a_blocked_item_with_an_empty_lane_is_stranded() -> None:
    work_row(event_row(PAGES), "processed")
    item = work_row(event_row(PAGES), "blocked")
    assert only("lane_stranded", audit()) == item.work_id


def test_a_blocked_item_ahead_of_everything_that_runs_is_stranded() -> None:
    first = work_row(event_row(PAGES), "blocked")
    work_row(event_row(PAGES), "pending")
    assert only("lane_stranded", audit()) == first.work_id


def test_a_queued_successor_does_not_keep_a_lane_alive() -> None:
    other = route_of("contact", id=3, version=2)
    work_row(event_row(CONTACTS), "processed")
    successor = work_row(event_row(CONTACTS), "blocked", projection_active_key=None)
    item = work_row(event_row(other), "blocked")
    report = audit()
    assert found_by("lane_stranded", report) == [item.work_id]
    assert found_by("successor_alone", report) == [successor.work_id]


def test_a_blocked_item_without_a_lane_is_stranded() -> None:
    item = work_row(event_row(PAGES), "blocked", lane_key=None)
    assert only("lane_stranded", audit()) == item.work_id


def test_an_item_blocked_behind_a_holder_that_stands_later_is_right() -> None:
    work_row(event_row(PAGES), "blocked")
    work_row(event_row(PAGES), "processing")
    assert audit().ok


def test_a_due_item_blocked_behind_a_settling_one_is_found() -> None:
    work_row(event_row(CONTACTS), run_after=now() + LATER)
    waiting = work_row(event_row(PAGES), "blocked")
    assert only("lane_first_due", audit()) == waiting.work_id


def test_a_lane_on_hold_need_not_move() -> None:
    settling = work_row(event_row(CONTACTS), run_after=now() + LATER)
    work_row(event_row(PAGES), "blocked")
    LaneHold.objects.create(
        namespace="default", lane_key=settling.lane_key, lane="contact:42", reason="r", held_by="me", held_at=now()
    )
    assert audit().ok


def test_a_due_item_behind_a_due_one_is_right() -> None:
    work_row(event_row(CONTACTS), run_after=now() + LATER)
    work_row(event_row(PAGES), "pending")
    work_row(event_row(PAGES), "blocked")
    assert audit().ok


def test_pages_do_not_hide_what_lies_across_their_border() -> None:
    event = event_row()
    work_row(event, "processed")
    for _ in range(5):
        work_row(event_row(PAGES, source_id="9"), "processed")
    second = work_row(event, "processed", work_id="csp:second")
    report = audit(page_rows=2)
    assert only("ranges_distinct", report) == second.work_id
    assert report.checked["ranges_distinct"] == WorkItem.objects.count()
    assert report.checked["payload_hash"] == Event.objects.count()
