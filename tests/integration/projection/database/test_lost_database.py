"""The database goes away in the middle: the error is told to who can wait, and no attempt is blamed for it."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection

from projection.admission import activation
from projection.claiming.rescue import rescue
from projection.database import clock
from projection.execution.heartbeat import Heartbeat
from projection.execution.worker import ClaimWorker, drain_claims
from projection.flows import Generation
from projection.models import WorkFailure, WorkItem
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording, write, written
from tests.support.workers_by_hand import let_leases_run_out

pytestmark = pytest.mark.usefixtures("sound_database")


def per_event() -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    return ingress


def lose_connection(_: Generation) -> None:
    """The server ends this very connection."""
    with contextlib.suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute("KILL CONNECTION_ID()")


@pytest.fixture
def server_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks whether the database is there finds nobody."""

    def unreachable() -> None:
        raise OperationalError(2003, "Can't connect to server")

    monkeypatch.setattr("projection.database.outages.clock", SimpleNamespace(now=unreachable))


def test_an_atomic_group_is_nobodys_failure_when_the_database_is_away(server_down: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))

    def write_and_lose(generation: Generation) -> None:
        write(generation)
        lose_connection(generation)

    with recording(atomic=True) as seen:
        seen.acts += [write_and_lose]
        with pytest.raises(OperationalError):
            drain_claims()
        assert len(seen.runs) == 1, "its sibling is not even started"
    monkeypatch.undo()
    assert (states(7), states(8), written()) == (["processing"], ["processing"], 0)
    assert not WorkFailure.objects.exists()
    let_leases_run_out()
    assert rescue() == 2
    with recording(atomic=True):
        assert drain_claims() == 2
    assert (states(7), states(8)) == (["processed"], ["processed"])


def test_an_atomic_group_goes_on_when_only_its_connection_was_lost() -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))
    with recording(atomic=True) as seen:
        seen.acts += [lose_connection]
        assert drain_claims() == 2
    assert (states(7), states(8)) == (["processed"], ["processed"])
    assert not WorkFailure.objects.exists()


@pytest.mark.parametrize("losses", [1, 2])
def test_an_atomic_flow_is_blamed_for_a_lost_connection_only_when_it_happens_again(losses: int) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording(atomic=True) as seen:
        seen.acts += [lose_connection] * losses
        assert drain_claims() == 1
    item = WorkItem.objects.get()
    assert (item.state, item.attempts) == (("processed", 1) if losses == 1 else ("retry", 1))
    assert [attempt for _, attempt, _ in seen.runs] == [1, 1]
    assert WorkFailure.objects.count() == losses - 1


def test_a_plain_flow_that_lost_its_connection_leaves_the_next_one_a_fresh_one() -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))

    def begin_and_lose(generation: Generation) -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
        write(generation)
        lose_connection(generation)

    with recording(destination="one at a time") as seen:
        seen.acts += [begin_and_lose, write]
        assert drain_claims() == 2
    assert sorted(states(7) + states(8)) == ["processed", "processed"]
    assert written() == 1, "what the first had not committed is gone with its connection"


def test_a_database_that_is_away_does_not_say_that_projections_are_not_activated(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    activation.forget()

    def away(*_: object, **__: object) -> None:
        raise OperationalError(2006, "server has gone away")

    with monkeypatch.context() as patch:
        patch.setattr(activation, "fetch", away)
        with pytest.raises(OperationalError):
            activation.is_activated()
    assert activation.is_activated(), "and asks again"
    with recording():
        assert drain_claims() == 1
    assert WorkItem.objects.get().state == "processed"
    assert clock.now() is not None


def test_a_batch_whose_inputs_cannot_be_read_is_left_to_its_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))

    def away(*_: object) -> None:
        raise OperationalError(2013, "Lost connection during query")

    with recording() as seen, Heartbeat("worker", lease_seconds=60) as alive:
        worker = ClaimWorker(alive)
        try:
            with monkeypatch.context() as patch:
                patch.setattr("projection.execution.worker.prepare", away)
                with pytest.raises(OperationalError):
                    worker.step()
            assert alive._to_extend() == {}, "nobody runs them here, so nobody keeps them"
        finally:
            worker.close()
        assert (states(7), states(8)) == (["processing"], ["processing"])
        let_leases_run_out()
        assert rescue() == 2
        assert drain_claims() == 2
        assert sorted(seen.inputs) == [1, 2]
