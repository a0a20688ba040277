"""The entry points of django-q2: one loop a slot, a fresh task after each budget, one schedule for each loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string
from django_q.models import OrmQ, Schedule
from django_q.signing import SignedPackage
from pytest_django import Settings

from connectors.tasks import SCHEDULES
from projection import tasks
from projection.runtime.django_q import cluster_stop, resident_tasks
from projection.runtime.django_q.kill_proof import Flag
from projection.runtime.slots import Slot
from tests.support.deliveries import change, open_ingress, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_stop, "_stops", Flag())


def queued() -> list[tuple[str, tuple[int, ...], str]]:
    """(function, arguments, name) of the tasks that wait for the cluster."""
    found = [SignedPackage.loads(row.payload) for row in OrmQ.objects.order_by("id")]
    return [(task["func"], task["args"], task["name"]) for task in found]


@contextmanager
def taken(kind: str, number: int, *, everywhere: bool = False) -> Iterator[None]:
    """Another process of this host (`everywhere`: of any host) has the slot."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK(%s, 0)", [Slot(kind, number, everywhere=everywhere)._name])
            assert cursor.fetchone() == (1,)
        yield
    finally:
        other.close()


def never_called(**_: Any) -> int:
    raise AssertionError("the slot belongs to another loop")


def test_a_loop_whose_budget_is_over_hands_its_slot_to_a_fresh_task(settings: Settings) -> None:
    settings.RESIDENT_BUDGET_SECONDS = 7.0
    given: list[tuple[float, bool]] = []

    def loop(*, budget_seconds: float, stop: Callable[[], bool]) -> int:
        given.append((budget_seconds, stop()))
        return 5

    assert resident_tasks.resident_task("claim", 1, loop, "projection.tasks.claim") == 5
    assert given == [(7.0, False)]
    assert queued() == [("projection.tasks.claim", (1,), "claim-1")]


def test_a_slot_that_another_loop_has_is_left_to_it() -> None:
    with taken("claim", 1):
        assert resident_tasks.resident_task("claim", 1, never_called, "projection.tasks.claim") == 0
    assert queued() == [], "its holder goes on by itself"


def test_a_loop_that_was_stopped_has_no_continuation() -> None:

    def loop(*, budget_seconds: float, stop: Callable[[], bool]) -> int:
        cluster_stop.stop_all()
        assert stop()
        return 1

    assert resident_tasks.resident_task("claim", 1, loop, "projection.tasks.claim") == 1
    assert queued() == []


def test_a_loop_that_lost_its_slot_ends() -> None:
    def loop(*, budget_seconds: float, stop: Callable[[], bool]) -> int:
        assert not stop()
        connection.close()  # the database went away and came back
        with taken("claim", 1):
            connection.ensure_connection()
            assert stop()
        return 1

    assert resident_tasks.resident_task("claim", 1, loop, "projection.tasks.claim") == 1


def test_the_claim_loop_runs_what_is_due_and_leaves_if_a_flow_is_stuck(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[bool] = []
    monkeypatch.setattr(tasks, "leave_if_stuck", lambda: left.append(True))
    settings.RESIDENT_BUDGET_SECONDS = 0.2
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording():
        assert tasks.claim(1) == 1
    assert (states(7), left) == (["processed"], [True])
    assert queued() == [("projection.tasks.claim", (1,), "claim-1")]


def schedules() -> dict[str, tuple[str, str, int, int]]:
    return {row.name: (row.func, row.args, row.minutes, row.repeats) for row in Schedule.objects.all()}


def test_every_loop_has_one_schedule_however_often_and_by_whom_they_are_made() -> None:
    for _ in range(2):
        resident_tasks.ensure_schedules(SCHEDULES)
    assert schedules() == {name: (path, str(number), 1, -1) for name, (path, number) in SCHEDULES.items()}
    assert Schedule.objects.count() == len(SCHEDULES)


def test_a_schedule_of_an_older_version_is_brought_up_to_date() -> None:
    resident_tasks.ensure_schedules({"headrace-claim-1": ("projection.old.claim", 9)})
    Schedule.objects.update(minutes=60, repeats=3)
    resident_tasks.ensure_schedules({"headrace-claim-1": ("projection.tasks.claim", 1)})
    assert schedules() == {"headrace-claim-1": ("projection.tasks.claim", "1", 1, -1)}


def test_two_clusters_that_start_together_do_not_make_them_twice() -> None:
    with taken("schedules", 0, everywhere=True):
        resident_tasks.ensure_schedules(SCHEDULES)
    assert schedules() == {}, "the other one is making them"


def killed() -> int:
    """Its connection ends, as an operator of the database may do it."""
    other = connection.copy()
    with connection.cursor() as cursor, other.cursor() as killer:
        cursor.execute("SELECT CONNECTION_ID()")
        killer.execute(f"KILL {cursor.fetchone()[0]}")
        other.close()
        cursor.execute("SELECT 1")
    raise AssertionError("the server went on with a connection that it killed")


@pytest.mark.parametrize("path", [path for path, _ in SCHEDULES.values()])
def test_a_task_whose_connection_ends_says_so_in_one_line(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = {
        "connectors.tasks.route": "connectors.tasks.resident_task",
        "projection.tasks.claim": "projection.tasks.resident_task",
        "connectors.tasks.upkeep": "connectors.tasks.prune_if_due",
        "ops_ui.watch.task": "ops_ui.watch.look",
    }[path]
    monkeypatch.setattr(inner, lambda *_: killed())
    assert not import_string(path)(1)
    connection.close()
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(lines) == 1
    assert "the database is unavailable; the schedule tries again" in lines[0]


def test_a_fault_of_a_task_is_not_taken_for_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")
        return True

    monkeypatch.setattr("ops_ui.watch.look", broken)
    with pytest.raises(DatabaseError):
        import_string("ops_ui.watch.task")(1)
