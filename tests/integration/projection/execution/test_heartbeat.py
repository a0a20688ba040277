"""The heartbeat's own thread: leases last while flows run, what it cannot do it says, and it never gives up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError

from projection.claiming.rescue import rescue
from projection.database import clock
from projection.execution import heartbeat, stuck_threads
from projection.execution.heartbeat import Heartbeat
from projection.execution.worker import ClaimWorker
from projection.flows import Generation
from projection.models import Worker, WorkItem
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rivals import PATIENCE_SECONDS
from tests.support.workers_by_hand import ByHand, let_leases_run_out

pytestmark = pytest.mark.usefixtures("sound_database")

LEASE_SECONDS = 1
"""A beat comes after a third of it."""


class Beats:
    """Tells when the thread has sent a statement, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail: list[Exception] = []
        """Raised by the next statements of the thread, first come first served."""
        self._sent = threading.Semaphore(0)
        send = heartbeat._send

        def watched(statement: str, **values: object) -> int:
            if threading.current_thread() is threading.main_thread():
                return send(statement, **values)
            try:
                if self.fail:
                    raise self.fail.pop(0)
                return send(statement, **values)
            finally:
                self._sent.release()

        monkeypatch.setattr(heartbeat, "_send", watched)

    def await_one(self) -> None:
        assert self._sent.acquire(timeout=PATIENCE_SECONDS), "no beat"


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Beats:
    return Beats(monkeypatch)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the heartbeat logged."""
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    return [line for line in found if line["event"] in ("heartbeat", "worker")]


def one_claimed() -> tuple[int, str]:
    """Id and token of an item that is being executed."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
    return attempt.claimed.item.id, attempt.token


def test_a_lease_is_extended_and_the_process_seen_until_it_ends(beats: Beats) -> None:
    item, token = one_claimed()
    WorkItem.objects.filter(id=item).update(lease_expires_at=clock.now() - timedelta(minutes=1))
    with Heartbeat("worker", lease_seconds=LEASE_SECONDS) as alive:
        first = Worker.objects.get()
        alive.keep([item], token)
        beats.await_one()  # it may have begun before `keep`
        beats.await_one()
        beats.await_one()
        assert Worker.objects.get().seen_at > first.seen_at
        expires = WorkItem.objects.get(id=item).lease_expires_at
        assert expires is not None
        assert expires > clock.now() - timedelta(seconds=LEASE_SECONDS)
    assert not Worker.objects.exists()


def test_a_lost_lease_is_said_and_not_taken_back(beats: Beats, capsys: pytest.CaptureFixture[str]) -> None:
    item, _ = one_claimed()
    before = WorkItem.objects.filter(id=item).values().get()
    with Heartbeat("worker", lease_seconds=LEASE_SECONDS) as alive:
        alive.keep([item], "of another worker")
        for _ in range(3):
            beats.await_one()
        owner = alive.owner
    assert WorkItem.objects.filter(id=item).values().get() == before
    said = lines(capsys)[0]
    assert (said["worker"], said["count"], said["reason"]) == (owner, 1, "leases lost or expired")


def test_what_has_ended_is_not_kept_by_a_late_start() -> None:
    alive = Heartbeat("worker", lease_seconds=LEASE_SECONDS)
    alive.keep([1, 2], "token")
    alive.drop([(1, "token")])
    alive.started((1, "token"), 60.0)
    assert alive._to_extend() == {"token": [2]}


def test_an_attempt_that_lost_its_lease_leaves_the_next_one_of_its_item_alive() -> None:
    """Else each would end the lease of the one after it, of a flow that takes longer than a lease, until the budget is used up."""
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7))
    begun, dropped = threading.Semaphore(0), threading.Semaphore(0)
    ends = [threading.Event(), threading.Event()]

    class Watched(Heartbeat):
        def drop(self, leases: Iterable[tuple[int, str]]) -> None:
            super().drop(leases)
            dropped.release()

    def run_until(end: threading.Event, _: Generation) -> None:
        begun.release()
        end.wait(PATIENCE_SECONDS)

    alive = Watched("worker", lease_seconds=LEASE_SECONDS)
    worker = ClaimWorker(alive)
    with recording() as seen, alive:
        seen.acts += [partial(run_until, end) for end in ends]
        assert worker.step() == 1
        assert begun.acquire(timeout=PATIENCE_SECONDS)
        let_leases_run_out()
        assert rescue() == 1
        assert worker.step() == 1
        assert begun.acquire(timeout=PATIENCE_SECONDS)
        while dropped.acquire(blocking=False):
            pass
        ends[0].set()
        assert dropped.acquire(timeout=PATIENCE_SECONDS), "the first attempt's end is written: its lease was lost"
        item = WorkItem.objects.get()
        assert (item.state, item.attempts) == ("processing", 2)
        assert alive._to_extend() == {item.lease_token: [item.id]}
        ends[1].set()
        worker.close()
    assert WorkItem.objects.get().state == "processed"


@pytest.mark.parametrize("losses", [1, 2])
def test_a_process_that_leaves_takes_its_row_away_by_a_fresh_connection_where_it_must(beats: Beats, losses: int) -> None:
    with Heartbeat("router") as alive:
        assert Worker.objects.filter(id=alive.id).exists()
        beats.fail += [OperationalError(4031, "The client was disconnected by the server because of inactivity.")] * losses
    assert Worker.objects.filter(id=alive.id).exists() is (losses > 1), "then it is forgotten after its silence"


def test_a_beat_that_fails_is_said_and_the_next_one_comes(beats: Beats, capsys: pytest.CaptureFixture[str]) -> None:
    with Heartbeat("worker", lease_seconds=LEASE_SECONDS):
        seen = Worker.objects.get().seen_at
        beats.fail.append(OperationalError(2006, "server has gone away"))
        for _ in range(2):
            beats.await_one()
        assert beats.fail == []
        beats.await_one()
        assert Worker.objects.get().seen_at > seen
    (said,) = lines(capsys)
    assert "server has gone away" in said["error"]


def test_a_process_whose_atomic_flow_overruns_leaves_and_one_whose_flow_returned_does_not(
    beats: Beats, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = threading.Event()
    reasons: list[str] = []

    def note(reason: str) -> None:
        reasons.append(reason)
        left.set()

    monkeypatch.setattr(stuck_threads, "ATOMIC_GRACE_SECONDS", 0.0)
    monkeypatch.setattr(stuck_threads, "leave_now", note)
    with Heartbeat("worker", lease_seconds=LEASE_SECONDS) as alive:
        alive.watch(0.0)
        alive.watch(None)
        beats.await_one()
        beats.await_one()
        assert reasons == []
        alive.watch(0.0)
        assert left.wait(PATIENCE_SECONDS)
    assert set(reasons) == {"an atomic flow did not return in time; the process exits without waiting for it"}


@pytest.mark.parametrize(("silent", "forgotten"), [(timedelta(minutes=59), 0), (timedelta(minutes=61), 1)])
def test_a_process_that_died_without_a_word_is_forgotten_after_an_hour(silent: timedelta, forgotten: int) -> None:
    look: Callable[[], int] = Worker.objects.count
    with Heartbeat("router"):
        Worker.objects.update(seen_at=clock.now() - silent)
        assert (heartbeat.forget_silent_workers(), look()) == (forgotten, 1 - forgotten)
