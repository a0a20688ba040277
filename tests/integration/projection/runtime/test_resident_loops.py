"""Resident loops: woken by a commit, ended by their budget or a stop, and not by any single fault."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from django.db import OperationalError
from pytest_django import Settings

from connectors.models import Receipt
from connectors.tasks import route_loop
from projection.execution import worker
from projection.execution.worker import claim_loop, drain_claims
from projection.flows import Generation
from projection.models import Worker, WorkItem
from projection.runtime import wake_up
from projection.runtime.loop import resident
from tests.support.deliveries import change, open_ingress, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("sound_database")


@pytest.fixture(autouse=True)
def wake_folder(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings.HEADRACE_WAKE_DIR = Path(tmp_path_factory.mktemp("w"))


def in_background(loop: Callable[[Callable[[], bool]], object]) -> tuple[threading.Thread, threading.Event]:
    """The loop in a thread of its own, and what stops it."""
    from django.db import connection

    stop = threading.Event()

    def run() -> None:
        try:
            loop(stop.is_set)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, stop


def test_a_commit_wakes_the_router_and_then_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "POLL_SECONDS", 60.0)
    monkeypatch.setattr("connectors.tasks.POLL_SECONDS", 60.0)
    ingress = open_ingress()
    ingress.route()
    ran = threading.Event()
    with recording() as seen:
        seen.acts.append(lambda _: ran.set())
        loops = [
            in_background(lambda stop: route_loop(stop=stop)),
            in_background(lambda stop: claim_loop(stop=stop)),
        ]
        _until_listening(2)
        ingress.send(change(7))
        assert ran.wait(20), "nobody woke up"
        for _, stop in loops:
            stop.set()
        for kind in ("route", "claim"):
            wake_up.notify(kind)
        for thread, _ in loops:
            thread.join(20)
            assert not thread.is_alive()
    assert (states(7), Receipt.objects.get().state) == (["processed"], "routed")
    assert not Worker.objects.exists(), "each took its row away"


def _until_listening(count: int) -> None:
    """Loops announce nothing but their sockets."""
    from django.conf import settings

    ends = monotonic() + 20
    while len(list(Path(settings.HEADRACE_WAKE_DIR).glob("*.sock"))) < count:
        assert monotonic() < ends
        threading.Event().wait(0.01)


def test_a_loop_ends_with_its_budget() -> None:
    assert claim_loop(budget_seconds=0.0) == 0
    assert route_loop(budget_seconds=0.0) == 0


def test_a_loop_outlives_a_fault_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("projection.runtime.loop.LONGEST_BACKOFF_SECONDS", 0.001)
    faults = [OperationalError(2006, "gone away"), RuntimeError("a bug")]
    steps: list[int] = []

    def step() -> int:
        steps.append(1)
        if faults:
            raise faults.pop(0)
        return 5

    assert resident("claim", step, lambda: 0.0, None, lambda: len(steps) >= 4) == 10
    assert "gone away" in capsys.readouterr().err


def test_a_loop_that_finds_work_does_not_sleep_and_one_that_does_not_sleeps_until_the_next_is_due() -> None:
    found, pauses = iter([3, 2, 0, 1, 0]), []

    def pause() -> float:
        pauses.append(1)
        return 0.0

    steps: list[int] = []

    def step() -> int:
        steps.append(next(found))
        return steps[-1]

    assert resident("claim", step, pause, None, lambda: len(steps) == 5) == 6
    assert len(pauses) == 2


def test_a_worker_with_a_stuck_thread_ends_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.execution.dispatcher.TICK_SECONDS", 0.02)
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    released = threading.Event()

    def hang(_: Generation) -> None:
        released.wait()

    with recording(timeout=0.05) as seen:
        seen.acts.append(hang)
        try:
            assert claim_loop() == 1
        finally:
            released.set()
    assert states(7) == ["retry"]


def test_a_drain_that_is_stopped_hands_back_what_it_took_and_claims_nothing_more() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    with recording() as seen:
        assert drain_claims(batch=1, stop=WorkItem.objects.filter(claimed_at__isnull=False).exists) == 1
    assert seen.runs == []
    assert sorted(WorkItem.objects.values_list("state", "attempts")) == [("pending", 0), ("retry", 0)]
