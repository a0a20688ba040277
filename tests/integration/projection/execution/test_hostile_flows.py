"""Flows that misuse the transaction they are in, or end in ways of their own: each harms its own attempt and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from connectors.models import Namespace
from projection.execution.worker import drain_claims
from projection.flows import Generation
from projection.models import WorkFailure
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording, write, written
from tests.support.rivals import PATIENCE_SECONDS, Rival
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


@contextlib.contextmanager
def deadlock() -> Iterator[Callable[[], None]]:
    """Calling it asks for a lock that a rival holds, which waits for one of ours; the server lets the caller lose.

    The rival has written so much more that it is never the one.
    """
    Namespace.objects.bulk_create([Namespace(name="ours"), Namespace(name="theirs")])
    holds, asks = threading.Event(), threading.Event()

    def act() -> None:
        with transaction.atomic():
            lock("theirs")
            Namespace.objects.bulk_create(Namespace(name=f"weight {number}") for number in range(300))
            holds.set()
            assert asks.wait(PATIENCE_SECONDS)
            lock("ours")
            Namespace.objects.filter(name__startswith="weight").delete()

    def meet() -> None:
        lock("ours")
        asks.set()
        rival.waits()
        lock("theirs")

    rival = Rival(act)
    assert holds.wait(PATIENCE_SECONDS)
    yield meet
    asks.set()
    rival.result()


def lock(name: str) -> None:
    Namespace.objects.select_for_update().get(name=name)


@pytest.mark.parametrize("nested", [0, 1, 2])
def test_a_tail_that_swallows_a_deadlock_keeps_nothing_and_has_failed(nested: int) -> None:
    """The server has rolled back the first half; the second would have been committed by itself, and the item processed."""
    ingress = per_event()
    ingress.admit(change(7))

    def swallow_deadlock(generation: Generation) -> None:
        with deadlock() as meet, generation.commit():
            write(generation)
            with contextlib.suppress(OperationalError), contextlib.ExitStack() as blocks:
                for _ in range(nested):
                    blocks.enter_context(transaction.atomic())
                meet()
            with contextlib.suppress(OperationalError):
                Namespace.objects.create(name="written by the second half")

    with recording() as seen:
        seen.acts.append(swallow_deadlock)
        drain_claims()
    assert (states(7), written()) == (["retry"], 0)
    assert WorkFailure.objects.get().error.startswith("OperationalError: (1213")


@pytest.mark.parametrize("atomic", [False, True])
def test_a_lock_wait_timeout_that_is_swallowed_ends_the_transaction_too(atomic: bool) -> None:
    """Of an atomic flow the same attempt runs again, as after every conflict."""
    ingress = per_event()
    ingress.admit(change(7))
    Namespace.objects.create(name="held")
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock("held")
            entered.set()
            assert leave.wait(PATIENCE_SECONDS)

    def swallow_timeout(generation: Generation) -> None:
        with contextlib.nullcontext() if atomic else generation.commit():
            write(generation)
            with connection.cursor() as cursor:
                cursor.execute("SET innodb_lock_wait_timeout = 1")
            with contextlib.suppress(OperationalError):
                lock("held")
            leave.set()
            with contextlib.suppress(OperationalError):
                Namespace.objects.create(name="written by the second half")

    rival = Rival(hold)
    assert entered.wait(PATIENCE_SECONDS)
    with recording(atomic=atomic) as seen:
        seen.acts.append(swallow_timeout)
        drain_claims()
    rival.result()
    assert not Namespace.objects.filter(name="written by the second half").exists()
    assert (states(7), written()) == ((["processed"], 0) if atomic else (["retry"], 0))


@pytest.mark.parametrize("misuse", [commit_by_hand, roll_back_by_hand, swallow, leave_open])
def test_a_tail_that_misuses_its_transaction_keeps_nothing(misuse: Any) -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def tail(generation: Generation) -> None:
        with generation.commit():
            if misuse is not swallow:
                write(generation)
            misuse(generation)

    with recording() as seen:
        seen.acts.append(tail)
        drain_claims()
    assert (states(7), written()) == (["retry"], 0)
