"""Upkeep: once a period for the whole installation, whoever asks; what was stopped or failed is gone on with by the next to ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from pytest_django import Settings

from connectors import tasks
from connectors.models import Receipt, Upkeep
from connectors.retention import maintenance
from connectors.retention.maintenance import Done, run_if_due
from connectors.retention.prune import retain
from projection.execution.worker import drain_claims
from projection.models import Event, WorkItem
from projection.runtime.django_q import cluster_stop
from projection.runtime.django_q.kill_proof import Flag
from projection.runtime.slots import Slot
from projection.runtime.stop_flag import Stop
from tests.support import console_world
from tests.support.deliveries import changes, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import PATIENCE_SECONDS, Rival
from tests.support.server_work import texts_recorded

pytestmark = pytest.mark.usefixtures("database")

HOUR = 3600


@pytest.fixture(autouse=True)
def no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_stop, "_stops", Flag())


def row() -> Upkeep:
    return Upkeep.objects.get()


def later(seconds: int) -> None:
    """Time passes."""
    Upkeep.objects.update(finished_at=F("finished_at") - timedelta(seconds=seconds))


def done(_stop: Stop) -> Done:
    return Done({"events": 2}, finished=True)


@contextmanager
def taken() -> Iterator[None]:
    """A process of another host is at it."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK(%s, 0)", [Slot("prune", 0, everywhere=True)._name])
            assert cursor.fetchone() == (1,)
        yield
    finally:
        other.close()


def test_it_is_done_once_a_period_and_once_after_a_gap() -> None:
    assert [run_if_due("prune", HOUR, done) for _ in range(3)] == [True, False, False]
    later(HOUR - 60)
    assert not run_if_due("prune", HOUR, done)
    later(4 * HOUR)
    assert [run_if_due("prune", HOUR, done) for _ in range(2)] == [True, False]
    assert (row().counts, row().last_error) == ('{"events": 2}', None)


def test_the_lock_of_a_slot_is_the_same_on_every_host(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Slot("prune", 0, everywhere=True)._name, Slot("claim", 1)._name
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    there = Slot("prune", 0, everywhere=True)._name, Slot("claim", 1)._name
    assert (here[0] == there[0], here[1] == there[1]) == (True, False)


def test_while_a_process_is_at_it_no_other_begins() -> None:
    with taken():
        assert not run_if_due("prune", HOUR, done)
    assert not Upkeep.objects.exists()


def test_clusters_that_ask_at_the_same_moment_make_one_run() -> None:
    together, runs = threading.Barrier(3), []

    def ask() -> bool:
        together.wait(PATIENCE_SECONDS)
        return run_if_due("prune", HOUR, lambda _stop: runs.append(1) or done(_stop))

    asked = [rival.result() for rival in [Rival(ask) for _ in range(3)]]
    assert (sorted(asked), runs) == ([False, False, True], [1])


def test_what_was_stopped_is_gone_on_with_at_once() -> None:
    assert run_if_due("prune", HOUR, lambda _stop: Done({"events": 3}, finished=False))
    started = row().started_at
    assert row().finished_at is None
    assert run_if_due("prune", HOUR, done)
    assert (row().counts, row().started_at) == ('{"events": 5}', started)
    assert row().finished_at is not None


def test_what_failed_is_kept_and_tried_again() -> None:
    def failing(_stop: Stop) -> Done:
        raise RuntimeError("no disk")

    assert run_if_due("prune", HOUR, failing)
    assert "no disk" in str(row().last_error)
    assert run_if_due("prune", HOUR, done)
    assert row().last_error is None


def test_it_is_told_to_stop_with_the_cluster_and_after_its_budget(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []

    def look(stop: Stop) -> Done:
        told.append(stop())
        cluster_stop.stop_all()
        told.append(stop())
        return Done({}, finished=False)

    assert run_if_due("prune", HOUR, look)
    assert told == [False, True]
    monkeypatch.setattr(cluster_stop, "_stops", Flag())
    settings.RESIDENT_BUDGET_SECONDS = 0
    assert run_if_due("prune", HOUR, look)
    assert told[2], "the budget is over"


def test_when_nothing_is_due_it_costs_three_statements() -> None:
    assert tasks.upkeep(1)
    with texts_recorded() as texts:
        assert not tasks.upkeep(1)
    assert len(texts) == 3, texts


def test_a_cluster_that_stops_half_way_leaves_the_rest_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*changes(7, 3))
    with recording():
        drain_claims()
    monkeypatch.setattr("projection.retention.prune.ITEMS_A_UNIT", 1)
    WorkItem.objects.update(terminal_at=F("terminal_at") - timedelta(days=40))
    Receipt.objects.update(received_at=F("received_at") - timedelta(days=40))
    expected = retain(dry_run=True)
    looks = iter([False, False, True])
    first = retain(stop=lambda: next(looks))
    assert (first.work_items, first.receipts, first.finished) == (2, 0, False)
    assert tasks.upkeep(1)
    rest = row()
    assert rest.counts == '{"events": 1, "work_items": 1, "receipts": 1, "unverified": 0, "jobs": 0}'
    assert (expected.events, expected.work_items, expected.receipts) == (3, 3, 1)
    assert not Event.objects.exists()


def test_retention_is_the_upkeep_of_every_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(maintenance, "run_if_due", lambda name, period, _act: asked.append((name, period)) or True)
    assert tasks.upkeep(1)
    assert asked == [("prune", HOUR)]


def test_the_console_says_how_long_things_are_kept_and_how_the_last_run_went(settings: Settings) -> None:
    settings.HEADRACE_RETENTION_DAYS = 12

    client = console_world.client("viewer")

    def said() -> str:
        return client.get("/admin/workers", follow=True).content.decode()

    assert "Retention has not run yet" in said()
    run_if_due("prune", HOUR, done)
    assert "retained for 12 days" in said()
    assert "Last run ended" in said()

    def failing(_stop: Stop) -> Done:
        raise RuntimeError("no disk")

    later(2 * HOUR)
    run_if_due("prune", HOUR, failing)
    assert "no disk" in said()
