"""Settling: a burst's first event fixes the deadline, later ones inherit it to the microsecond, and it never moves later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Upper

from connectors.routing.router import drain_receipts
from projection.admission import settle
from projection.admission.rows import key_of
from projection.admission.stored_events import stored_facts
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import RetryLater
from projection.models import Event, WorkItem
from tests.support.altered_columns import altered
from tests.support.deliveries import Ingress, change, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import at

pytestmark = pytest.mark.usefixtures("sound_database")

START = datetime(2026, 5, 5, 5, 5, 0, 250123, tzinfo=UTC)
DEADLINE = START + timedelta(seconds=5)
MICROSECOND = timedelta(microseconds=1)


def settled(**options: object) -> Ingress:
    ingress = open_ingress()
    ingress.route(settle=5.0, **options)
    return ingress


def deadlines() -> set[datetime | None]:
    return set(Event.objects.values_list("next_attempt_at", flat=True))


def test_the_first_event_of_a_burst_fixes_the_deadline_and_later_ones_inherit_it() -> None:
    ingress = settled()
    for seconds in (0, 1.000001, 4.999999):
        with at(START + timedelta(seconds=seconds)):
            ingress.admit(change(7), change(7))
    assert deadlines() == {DEADLINE}
    assert [item.run_after for item in generations(7)] == [DEADLINE]


def test_it_may_be_claimed_at_the_deadline_and_not_a_microsecond_before() -> None:
    ingress = settled()
    with at(START):
        ingress.admit(change(7))
    with recording():
        with at(DEADLINE - MICROSECOND):
            assert drain_claims() == 0
        with at(DEADLINE):
            assert drain_claims() == 1


def test_an_event_after_the_deadline_opens_a_new_burst_but_never_delays_the_unclaimed_generation() -> None:
    ingress = settled()
    with at(START):
        ingress.admit(change(7))
    with at(DEADLINE):
        ingress.admit(change(7))
        assert [item.run_after for item in generations(7)] == [DEADLINE]
    assert deadlines() == {DEADLINE, DEADLINE + timedelta(seconds=5)}


def test_each_source_and_each_route_has_a_deadline_of_its_own() -> None:
    ingress = settled()
    ingress.route("slow", settle=60.0)
    with at(START):
        ingress.admit(change(7))
    with at(START + timedelta(seconds=1)):
        ingress.admit(change(7), change(8))
    found = set(WorkItem.objects.values_list("source_lane", "run_after"))
    assert found == {
        ("contact:7", DEADLINE),
        ("contact:7", START + timedelta(seconds=60)),
        ("contact:8", DEADLINE + timedelta(seconds=1)),
        ("contact:8", START + timedelta(seconds=61)),
    }


@pytest.mark.parametrize("status", ["skipped", "pending", "processing", "completed", "failed"])
def test_a_deadline_is_inherited_whatever_the_legacy_status(status: str) -> None:
    ingress = settled()
    with at(START):
        ingress.admit(change(7))
        Event.objects.update(status=status)
    with at(START + timedelta(seconds=1)):
        ingress.admit(change(7))
    assert deadlines() == {DEADLINE}


def test_a_repaired_task_keeps_the_deadline_of_its_burst() -> None:
    ingress = settled()
    event = change(7)
    with at(START):
        ingress.admit(event)
        WorkItem.objects.all().delete()
    with at(START + timedelta(seconds=2)):
        assert ingress.admit(event, change(7)).repaired == 1
    assert [item.run_after for item in generations(7)] == [DEADLINE]


def test_a_successor_settles_too() -> None:
    ingress = settled(retry=RetryPolicy(base=1))
    with recording() as seen:
        with at(START):
            ingress.admit(change(7))
        with at(DEADLINE):
            seen.acts.append(lambda _: ingress.admit(change(7)))
            drain_claims()
            assert states(7) == ["processed", "pending"]
            assert drain_claims() == 0
        assert generations(7)[1].run_after > DEADLINE


def test_a_generation_that_settles_does_not_keep_its_lane_from_running() -> None:
    ingress = settled()
    ingress.route("now", mode="per_event")
    with recording() as seen, at(START):
        ingress.admit(change(7))
        assert [item.state for item in generations(7)] == ["pending", "pending"]
        assert drain_claims() == 1
    assert len(seen.runs) == 1


def test_a_settled_item_that_comes_due_waits_while_another_of_its_lane_retries() -> None:
    ingress = settled()
    ingress.route("now", mode="per_event")
    with recording() as seen:
        with at(START):
            ingress.admit(change(7))
            seen.raises.append(RetryLater(3600))
            assert drain_claims() == 1
        WorkItem.objects.filter(state="retry").update(run_after=START + timedelta(hours=1))  # written by another thread's clock
        with at(DEADLINE):
            assert drain_claims() == 0
        with at(START + timedelta(hours=1, seconds=1)):
            assert drain_claims() == 2
    assert {item.state for item in generations(7)} == {"processed"}


def test_of_two_due_items_of_one_lane_the_first_runs_first() -> None:
    ingress = settled()
    ingress.route("now", mode="per_event")
    with recording() as seen:
        with at(START):
            ingress.admit(change(7))
        with at(DEADLINE):
            drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1], [2]]


def test_where_the_column_keeps_whole_seconds_the_stored_value_is_the_deadline() -> None:
    ingress = settled()
    with altered("_System_ConnectorEvent", NextAttemptAt="DATETIME NULL"):
        with at(START):
            ingress.admit(change(7))
            (stored,) = deadlines()
        with at(START + timedelta(seconds=2)):
            ingress.admit(change(7))
            ingress.send(change(7))
            drain_receipts()
        assert deadlines() == {stored}
        assert generations(7)[0].run_after <= DEADLINE


def test_a_key_that_only_looks_like_an_asked_one_answers_for_nobody() -> None:
    ingress = settled()
    with altered("_System_ConnectorEvent", ProjectionKey="VARCHAR(68) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL"):
        with at(START):
            ingress.admit(change(7))
        Event.objects.update(projection_key=Upper("projection_key"), next_attempt_at=START + timedelta(seconds=1))
        (event,) = stored_facts(list(Event.objects.values_list("id", flat=True)), START)
        with at(START):
            found = settle.deadlines([event.inbound], START)
        assert found == {key_of(event.inbound): DEADLINE}
        Event.objects.all().delete()
        WorkItem.objects.all().delete()
