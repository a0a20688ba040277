"""Repair and sweep: what only a fault can leave behind is put right; events without a route are routed once there is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.models import F

from connectors.models import Route
from connectors.routing.sweep import sweep
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.integrity.invariants import audit
from projection.integrity.repair import Repaired, repair
from projection.models import Event, WorkItem
from tests.support import commands
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, ordinals, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")

NOTHING = Repaired(missing_tasks=0, handoffs=0, lanes=0)


def sql(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)


def lose_a_generation(ingress: Ingress) -> None:
    ingress.route()
    ingress.admit(*changes(7, 3))
    WorkItem.objects.all().delete()


def lose_an_item(ingress: Ingress) -> None:
    ingress.route(mode="per_event")
    ingress.admit(*changes(7, 2))
    WorkItem.objects.order_by("-id")[0].delete()


@pytest.mark.parametrize(("lose", "missing"), [(lose_a_generation, 3), (lose_an_item, 1)])
def test_missing_work_is_made_again_and_runs_once(lose: Callable[[Ingress], None], missing: int) -> None:
    lose(open_ingress())
    before = repair(dry_run=True)
    assert before == Repaired(missing_tasks=missing, handoffs=0, lanes=0)
    assert repair() == before
    assert repair() == NOTHING
    with recording() as seen:
        drain_claims()
    assert seen.inputs == ordinals(7)
    assert audit().ok


def test_missing_work_of_a_retired_route_is_made_by_the_events_own_snapshot() -> None:
    ingress = open_ingress()
    lose_a_generation(ingress)
    Route.objects.update(is_current=False, deleted_at="2026-01-01T00:00:00Z")
    assert repair().missing_tasks == 3
    with recording() as seen:
        drain_claims()
    assert seen.inputs == ordinals(7)


def test_work_that_died_is_not_missing() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*changes(7, 2))
    with recording() as seen:
        seen.raises += [DeadLetter("bad")]
        drain_claims()
    assert repair() == NOTHING


def test_a_queued_generation_that_stands_alone_is_handed_off() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    sql("UPDATE `_System_ConnectorWorkItem` SET ClaimedAt = UTC_TIMESTAMP(6)")
    ingress.admit(*changes(7, 2))
    sql(
        "UPDATE `_System_ConnectorWorkItem` SET State = 'processed', TerminalAt = UTC_TIMESTAMP(6), ProjectionActiveKey = NULL "
        "WHERE ProjectionActiveKey IS NOT NULL"
    )
    assert repair(dry_run=True) == Repaired(missing_tasks=0, handoffs=1, lanes=0)
    assert states(7) == ["processed", "blocked"]
    assert repair().handoffs == 1
    with recording() as seen:
        drain_claims()
    assert seen.inputs == ordinals(7)[1:]


def test_a_stranded_lane_moves_again() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*changes(7, 3))
    first = generations(7)[0]
    WorkItem.objects.filter(id=first.id).update(state="processed", terminal_at=F("created_date"))
    assert not audit().ok
    assert repair(dry_run=True).lanes == 1
    assert repair().lanes == 1
    assert states(7) == ["processed", "pending", "blocked"]
    with recording() as seen:
        drain_claims()
    assert seen.inputs == ordinals(7)[1:]
    assert audit().ok


def test_an_unrouted_event_is_routed_by_a_copy_that_runs_although_its_time_has_passed() -> None:
    ingress = open_ingress()
    ingress.admit(*changes(7, 2))
    ingress.route()
    with recording() as seen:
        ingress.admit(change(7))
        drain_claims()
        assert sweep(dry_run=True).copies == 2
        assert sweep().copies == 2
        assert sweep().copies == 0
        drain_claims()
    first, second = Event.objects.filter(route_id=None).order_by("id")
    copies = Event.objects.filter(routed_from_event_id__isnull=False).order_by("id")
    assert [copy.routed_from_event_id for copy in copies] == [first.id, second.id]
    assert [(copy.payload, copy.delivery_id) for copy in copies] == [(one.payload, one.delivery_id) for one in (first, second)]
    assert seen.inputs == [3, 4, 5]
    assert (first.route_snapshot, first.projection_key) == (None, None)
    assert audit().ok


def test_a_redelivery_after_the_sweep_changes_nothing() -> None:
    ingress = open_ingress()
    event = change(7)
    ingress.admit(event)
    ingress.route()
    sweep()
    report = ingress.admit(event, change(8))
    assert (report.events, report.duplicates) == (1, 1)


def test_the_command_says_what_it_would_do_and_does_it() -> None:
    lose_a_generation(open_ingress())
    counts = {"missing_tasks": 3, "handoffs": 0, "lanes": 0, "unrouted_events": 0, "late_events": 0, "refused": []}
    assert commands.run("repair", "--dry-run") == (0, {"dry_run": True, **counts})
    assert WorkItem.objects.count() == 0
    assert commands.run("repair") == (0, {"dry_run": False, **counts})
    assert WorkItem.objects.count() == 1


def test_more_than_one_batch_of_each_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.integrity.repair.BATCH", 2)
    ingress = open_ingress()
    ingress.route(on=("changed",))
    ingress.route("single", mode="per_event", on=("single",))
    ingress.admit(*[change(n) for n in range(5)])
    sql("UPDATE `_System_ConnectorWorkItem` SET ClaimedAt = UTC_TIMESTAMP(6)")
    ingress.admit(*[change(n) for n in range(5)])
    ended = "State = 'processed', TerminalAt = UTC_TIMESTAMP(6), ProjectionActiveKey = NULL"
    sql(f"UPDATE `_System_ConnectorWorkItem` SET {ended} WHERE ProjectionActiveKey IS NOT NULL")
    ingress.admit(*[change(n, kind="single") for n in range(10, 15)], *[change(n, kind="single") for n in range(10, 15)])
    sql(f"UPDATE `_System_ConnectorWorkItem` SET {ended} WHERE State = 'pending' AND ProjectionKey IS NULL")
    ingress.admit(*[change(n, kind="single") for n in range(20, 25)])
    WorkItem.objects.filter(source_lane__in=[f"contact:{n}" for n in range(20, 25)]).delete()
    assert repair(dry_run=True) == Repaired(missing_tasks=5, handoffs=5, lanes=5)
    assert repair() == Repaired(missing_tasks=5, handoffs=5, lanes=5)
    assert repair() == NOTHING
    assert audit().ok
