"""Flows that misuse the transaction they are in, or end in ways of their own: each harms its own attempt and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from connectors.models import Namespace
from projection.execution.worker import drain_claims
from projection.flows import Generation
from projection.models import WorkFailure
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording, write, written
from tests.support.workers_by_hand import let_retries_come_due

pytestmark = pytest.mark.usefixtures("sound_database")

BATCH = pytest.mark.parametrize("batch", [False, True], ids=["one by one", "batch"])


def per_event(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event", **options)
    return ingress


def swallow(generation: Generation) -> None:
    """Django then rolls the savepoint back without a word."""
    write(generation)
    try:
        write(generation)
    except IntegrityError:
        return


def commit_by_hand(generation: Generation) -> None:
    with connection.cursor() as cursor:
        cursor.execute("COMMIT")


def close(generation: Generation) -> None:
    connection.close()


def roll_back_by_hand(generation: Generation) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK")


def leave_open(generation: Generation) -> None:
    transaction.atomic().__enter__()


def own_conflict(generation: Generation) -> None:
    raise OperationalError(1213, "deadlock")


def own_lost_connection(generation: Generation) -> None:
    """Of another server that the flow talks to."""
    raise OperationalError(2006, "server has gone away")


def leave_process(generation: Generation) -> None:
    raise SystemExit(3)


def be_cancelled(generation: Generation) -> None:
    raise asyncio.CancelledError


MISUSES = [
    swallow,
    commit_by_hand,
    roll_back_by_hand,
    close,
    leave_open,
    own_conflict,
    own_lost_connection,
    leave_process,
    be_cancelled,
]


@BATCH
@pytest.mark.parametrize("misuse", MISUSES)
def test_an_atomic_flow_that_misuses_its_transaction_fails_alone(misuse: Any, batch: bool) -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(4)])

    def act(generation: Generation) -> None:
        misuse(generation) if generation.source.id == "2" else write(generation)

    with recording(atomic=True, batch=batch) as seen:
        seen.acts += [act] * 100
        drain_claims()
    assert {n: states(n) for n in range(4)} == {0: ["processed"], 1: ["processed"], 2: ["retry"], 3: ["processed"]}
    assert written() == 3
    assert [failure.outcome for failure in WorkFailure.objects.all()] == ["retry"]


@pytest.mark.parametrize("misuse", [be_cancelled, leave_process, own_conflict, own_lost_connection])
def test_a_plain_flow_that_ends_in_its_own_way_has_failed(misuse: Any) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording(timeout=5) as seen:
        seen.acts.append(misuse)
        drain_claims()
    assert states(7) == ["retry"]
    assert [failure.outcome for failure in WorkFailure.objects.all()] == ["retry"]


def begin(generation: Generation) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    write(generation)


def no_autocommit(generation: Generation) -> None:
    transaction.set_autocommit(False)
    write(generation)


def open_atomic(generation: Generation) -> None:
    transaction.atomic().__enter__()
    write(generation)


@pytest.mark.parametrize(("leaving", "state"), [(begin, "processed"), (no_autocommit, "retry"), (open_atomic, "retry")])
def test_a_transaction_that_a_plain_flow_left_open_ends_with_it(leaving: Any, state: str) -> None:
    """The next flow of the thread starts afresh, and no lock outlives the attempt."""
    ingress = per_event()

    def tail(generation: Generation) -> None:
        with generation.commit():
            Namespace.objects.create(name="written by the tail")

    with recording() as seen:
        seen.acts += [leaving, tail]
        ingress.admit(change(1), change(2))
        drain_claims()
    assert (states(1), states(2)) == ([state], ["processed"])
    assert list(Namespace.objects.filter(name__startswith="written by").values_list("name", flat=True)) == ["written by the tail"]


def test_what_a_flow_raises_after_its_tail_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def tail_then_fail(generation: Generation) -> None:
        with generation.commit():
            write(generation)
        raise ValueError("after the tail")

    with recording() as seen:
        seen.acts.append(tail_then_fail)
        drain_claims()
    assert (states(7), written()) == (["processed"], 1)
    assert "after the tail" in "".join(capfd.readouterr())


def test_a_second_tail_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def twice(generation: Generation) -> None:
        with generation.commit():
            write(generation)
        with generation.commit():
            Namespace.objects.create(name="written by the second")

    with recording() as seen:
        seen.acts.append(twice)
        drain_claims()
    assert (states(7), written(), WorkFailure.objects.count()) == (["processed"], 1, 0)


def test_a_flow_that_changes_what_it_was_given_changes_nothing_else() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(7))

    def mutate(generation: Generation) -> None:
        with contextlib.suppress(AttributeError):
            generation.inputs.clear()
        generation.work_id = "another"
        generation.inputs = ()
        raise ValueError("and fails")

    with recording() as seen:
        seen.acts.append(mutate)
        drain_claims()
        let_retries_come_due()
        drain_claims()
    assert states(7) == ["processed"]
    assert [inputs for _, _, inputs in seen.runs] == [[1, 2], [1, 2]]
