"""The audit names what is wrong with events: one planted violation for each invariant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from projection.integrity.invariants import LISTED, AuditReport, audit
from projection.models import Event
from tests.support.rows import CONTACTS, LONG_AGO, PAGES, event_row, replay_event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def only(invariant: str, report: AuditReport) -> str:
    """The id of the one violation, which must be of `invariant`."""
    assert [found.invariant for found in report.violations] == [invariant], report.violations
    return report.violations[0].id


def test_a_clean_database_has_no_violation() -> None:
    first, second = event_row(), event_row()
    work_row(second, "processed", lane_position=first.enqueue_ordinal)
    running = work_row(event_row(), "processing")
    work_row(event_row(), "blocked")
    dead = work_row(event_row(PAGES, source_id="7"), "dead")
    replay_row(dead, "retry")
    work_row(event_row(PAGES, source_id="7"), "blocked")
    work_row(event_row(PAGES, source_id="8"), "pending")
    event_row(None)
    report = audit()
    assert report.ok, report.violations
    assert report.checked["payload_hash"] == Event.objects.count()
    assert running.lane_holder_key is not None


def test_a_changed_payload_is_found() -> None:
    event = event_row()
    work_row(event)
    Event.objects.filter(id=event.id).update(payload='{"v":2}')
    assert only("payload_hash", audit()) == str(event.id)


def test_exact_payload_texts_hash_the_same_in_the_database() -> None:
    for number, text in enumerate(('{"v":1.10}', '"\\ud800 é 🎩 "', '{"n":18446744073709551616}', " []\n")):
        work_row(event_row(PAGES, source_id=str(number), payload=text))
    assert audit().ok


@pytest.mark.parametrize("lost", [{"route_snapshot": None}, {"route_snapshot": ""}, {"route_version": None}])
def test_a_lost_routing_snapshot_is_found(lost: dict[str, str | None]) -> None:
    event = event_row()
    work_row(event)
    Event.objects.filter(id=event.id).update(**lost)
    assert only("route_snapshot", audit()) == str(event.id)


def test_an_unrouted_event_with_a_projection_key_is_found() -> None:
    event = event_row(None, projection_key="csp:1")
    assert only("route_snapshot", audit()) == str(event.id)


@pytest.fixture
def no_unique_delivery_key() -> Iterator[None]:
    """An older installation's table, where the unique key is gone."""
    table = Event._meta.db_table
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table)
        (name,) = [n for n, c in constraints.items() if c["unique"] and [x.lower() for x in c["columns"]] == ["deliverykey"]]
        cursor.execute(f"ALTER TABLE `{table}` DROP INDEX `{name}`")
    try:
        yield
    finally:
        Event.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE `{table}` ADD UNIQUE INDEX `{name}` (`DeliveryKey`)")


def test_a_delivery_key_used_twice_is_found(no_unique_delivery_key: None) -> None:
    first = event_row(PAGES)
    second = event_row(PAGES, delivery_id=first.delivery_id)
    work_row(first, "processed")
    work_row(second, "processed", work_id="evt:other")
    assert only("delivery_key", audit()) == str(second.id)


def test_an_ordinal_used_twice_is_found() -> None:
    first = event_row(PAGES)
    second = event_row(PAGES, source_id="43", enqueue_ordinal=first.enqueue_ordinal)
    work_row(first)
    work_row(second)
    assert only("ordinal_unique", audit()) == str(second.id)


def test_a_projection_event_after_the_newest_generation_has_no_task() -> None:
    work_row(event_row(), "processed")
    late = event_row()
    assert only("projection_covered", audit()) == str(late.id)


def test_a_projection_event_without_any_generation_has_no_task() -> None:
    event = event_row()
    assert only("projection_covered", audit()) == str(event.id)


def test_a_replay_generation_does_not_stand_for_a_later_event() -> None:
    dead = work_row(event_row(), "dead")
    late = event_row()
    replay_row(dead)
    assert only("projection_covered", audit()) == str(late.id)


def test_a_generation_from_before_ordinals_covers_by_ingress_time() -> None:
    event = event_row(created_date=LONG_AGO)
    work_row(event_row(enqueue_ordinal=0, source_id="42"), "processed")
    assert audit().ok, event


def test_an_event_from_before_ordinals_needs_a_later_generation() -> None:
    work_row(event_row(enqueue_ordinal=0, created_date=LONG_AGO), "processed")
    lost = event_row(enqueue_ordinal=0)
    event_row(enqueue_ordinal=0, executor_owner="event", status="processed", terminal_at=lost.created_date)
    assert only("legacy_covered", audit()) == str(lost.id)


def test_a_per_event_event_without_work_is_found() -> None:
    event = event_row(PAGES)
    assert only("per_event_work", audit()) == str(event.id)


def test_a_lane_less_event_of_a_projection_route_needs_its_own_work() -> None:
    event = event_row(CONTACTS, source_lane="")
    assert only("per_event_work", audit()) == str(event.id)


def test_a_per_event_event_with_two_items_is_found() -> None:
    event = event_row(PAGES)
    work_row(event)
    work_row(event, work_id="evt:other")
    assert only("per_event_work", audit()) == str(event.id)


def test_what_the_old_binary_finished_needs_no_work() -> None:
    event_row(PAGES, enqueue_ordinal=0, executor_owner="event", status="processed", terminal_at=LONG_AGO)
    assert audit().ok


def test_a_replay_event_that_nothing_selects_is_found() -> None:
    event = event_row()
    work_row(event, "dead")
    lost = replay_event_row(event)
    assert only("replay_event", audit()) == str(lost.id)


def test_a_replay_event_with_another_payload_is_found() -> None:
    dead = work_row(event_row(), "dead")
    replay = replay_row(dead)
    Event.objects.filter(id=replay.event_id).update(payload="{}", payload_sha256=event_row(None, payload="{}").payload_sha256)
    assert only("replay_event", audit()) == str(replay.event_id)


def test_a_replay_event_whose_original_is_gone_is_found() -> None:
    dead = work_row(event_row(), "dead")
    replay = replay_row(dead)
    Event.objects.filter(id=replay.event_id).update(replay_of_event_id=10**9)
    assert only("replay_event", audit()) == str(replay.event_id)


def test_violations_are_listed_up_to_a_limit_and_counted_beyond_it() -> None:
    for _ in range(LISTED + 3):
        event_row(PAGES)
    found = audit(page_rows=40).violations
    assert len(found) == LISTED + 1
    assert found[-1].id == ""
    assert f"{LISTED + 3} violations in total" in found[-1].detail
    assert len({violation.id for violation in found}) == LISTED + 1
