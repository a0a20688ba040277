"""Atomic flows: their own writes commit with the terminal state or not at all, so each generation takes effect exactly once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, OperationalError

from connectors.models import Namespace
from projection.claiming.rescue import rescue
from projection.execution.execute import run_atomic
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import DeadLetter, Generation, RetryLater, Skip
from projection.models import WorkFailure, WorkItem
from tests.support.deliveries import Ingress, change, changes, open_ingress, states
from tests.support.flows_of_tests import recording, write, written
from tests.support.workers_by_hand import ByHand, let_leases_run_out, let_retries_come_due

pytestmark = pytest.mark.usefixtures("sound_database")


def per_event(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event", **options)
    return ingress


BATCH = pytest.mark.parametrize("batch", [False, True], ids=["one by one", "batch"])


@BATCH
def test_writes_commit_with_the_terminal_states(batch: bool) -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(5)])
    with recording(atomic=True, batch=batch) as seen:
        seen.acts += [write] * 5
        assert drain_claims() == 5
    assert (written(), len(seen.runs)) == (5, 5)
    assert seen.calls == ([5] if batch else [1] * 5)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


@BATCH
@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("no"), "retry"), (DeadLetter("no"), "dead"), (Skip("no"), "skipped"), (RetryLater(9), "retry")]
)
def test_one_that_fails_rolls_back_alone(error: Exception, state: str, batch: bool) -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(4)])
    with recording(atomic=True, batch=batch) as seen:
        seen.acts += [write] * 20
        seen.raises_for["2"] = error
        drain_claims()
    assert written() == 3
    assert {n: states(n) for n in range(4)} == {0: ["processed"], 1: ["processed"], 2: [state], 3: ["processed"]}


def test_a_batch_that_fails_falls_back_to_one_by_one() -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(4)])
    with recording(atomic=True, batch=True) as seen:
        seen.acts += [write] * 20
        seen.raises_for["2"] = ValueError("no")
        drain_claims()
    assert seen.calls == [4, 1, 1, 1, 1]
    assert {attempt for _, attempt, _ in seen.runs} == {1}
    assert WorkFailure.objects.count() == 1


def test_an_attempt_that_failed_runs_again_and_takes_effect_once() -> None:
    ingress = per_event(retry=RetryPolicy(base=0))
    ingress.admit(change(7))
    with recording(atomic=True) as seen:
        seen.acts += [write, write]
        seen.raises += [ValueError("after the write"), None]
        drain_claims()
        assert written() == 0
        let_retries_come_due()
        drain_claims()
    assert (written(), states(7), [attempt for _, attempt, _ in seen.runs]) == (1, ["processed"], [1, 2])


def test_an_error_of_the_database_in_a_flow_fails_only_that_flow() -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))

    def twice(generation: Generation) -> None:
        Namespace.objects.create(name="written by twice")
        Namespace.objects.create(name="written by twice")

    with recording(atomic=True) as seen:
        seen.acts += [twice, write]
        drain_claims()
    assert (states(7), states(8), written()) == (["retry"], ["processed"], 1)
    assert WorkFailure.objects.get().error.startswith("IntegrityError")


def test_a_lost_lease_rolls_its_writes_back_and_the_others_run_again_without_it() -> None:
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(3)])
    with recording(atomic=True) as seen:
        attempts = ByHand("slow").claim()
        WorkItem.objects.filter(source_lane="contact:1").update(lease_token="somebody-else")
        seen.acts += [write] * 10
        ended = run_atomic(attempts)
        assert [list(one.lost) for one in ended if one.lost] == [[attempts[1].claimed.item.work_id]]
        assert written() == 2
        assert seen.sources == ["0", "1", "2", "0", "2"]
        assert {n: states(n) for n in range(3)} == {0: ["processed"], 1: ["processing"], 2: ["processed"]}
        let_leases_run_out()
        rescue()
        seen.acts[:] = [write]
        drain_claims()
    assert (states(1), written()) == (["processed"], 3)


@BATCH
@pytest.mark.parametrize("code", [1205, 1213, 9007])
def test_on_a_conflict_the_flows_run_again_in_the_same_attempt(code: int, batch: bool) -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))
    conflicts = iter([True, True])

    def conflict(generation: Generation) -> None:
        write(generation)
        if generation.source.id == "8" and next(conflicts, False):
            raise OperationalError(code, "try again")

    with recording(atomic=True, batch=batch) as seen:
        seen.acts += [conflict] * 20
        drain_claims()
    assert (states(7), states(8), written()) == (["processed"], ["processed"], 2)
    assert {attempt for _, attempt, _ in seen.runs} == {1}
    assert not WorkFailure.objects.exists()


def test_a_conflict_of_the_completion_runs_the_flow_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    complete = WorkItem.objects.complete_claimed_work_items
    conflicts = iter([True])

    def conflict(*args: Any) -> int:
        if next(conflicts, False):
            raise OperationalError(1213, "deadlock")
        return complete(*args)

    monkeypatch.setattr(WorkItem.objects, "complete_claimed_work_items", conflict)
    with recording(atomic=True) as seen:
        seen.acts += [write, write]
        drain_claims()
    assert (len(seen.runs), written(), states(7)) == (2, 1, ["processed"])


def test_a_unique_key_of_the_protocol_is_a_conflict_and_one_of_the_flow_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    raised = iter([IntegrityError(1062, "Duplicate entry 'x' for key 't.ProjectionActiveKey'")])

    def raise_once(generation: Generation) -> None:
        error = next(raised, None)
        if error:
            raise error

    with recording(atomic=True) as seen:
        seen.acts += [raise_once, raise_once]
        drain_claims()
    assert [attempt for _, attempt, _ in seen.runs] == [1, 1]
    assert states(7) == ["processed"]


def test_an_atomic_generation_hands_off_to_its_successor_in_the_same_transaction() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording(atomic=True) as seen:
        attempts = ByHand().claim()
        ingress.admit(*changes(7, 3))
        assert states(7) == ["processing", "blocked"]
        run_atomic(attempts)
        assert states(7) == ["processed", "pending"]
        drain_claims()
    assert [inputs for _, _, inputs in seen.runs] == [[1], [2, 3, 4]]


def test_a_slow_group_is_completed_before_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.execution.execute.ATOMIC_GROUP_SECONDS", 0.0)
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(3)])
    with recording(atomic=True) as seen:
        finished = run_atomic(ByHand().claim())
    assert [len(one.written) for one in finished] == [1, 1, 1]
    assert len(seen.runs) == 3
