"""What arrives while a generation runs is never lost and never run twice, also in a burst."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from projection.claiming.rescue import rescue
from projection.execution.attempts import Attempt
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.flows import Generation
from projection.models import WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, ordinals, states
from tests.support.flows_of_tests import Recorder, recording
from tests.support.workers_by_hand import ByHand, let_leases_run_out, let_retries_come_due, report

pytestmark = pytest.mark.usefixtures("sound_database")


def running(seen: Recorder) -> tuple[Ingress, Attempt]:
    """Event 1 is claimed and runs; events 2, 3 and 4 arrive."""
    ingress = open_ingress()
    ingress.route(retry=RetryPolicy(base=0))
    ingress.admit(change("S"))
    attempt = ByHand().claim_one()
    before = WorkItem.objects.values().get()
    for _ in range(3):
        ingress.admit(change("S"))
    first, successor = generations("S")
    assert WorkItem.objects.filter(id=first.id).values().get() == before, "the running generation is untouched"
    assert (successor.state, successor.projection_active_key, successor.lane_ordinal) == ("blocked", None, 4)
    return ingress, attempt


def still_queued() -> None:
    first, successor = generations("S")
    assert first.state == "retry"
    assert (successor.state, successor.projection_active_key) == ("blocked", None)


def succeed(attempt: Attempt) -> None:
    report(attempt)


def retry(attempt: Attempt) -> None:
    report(attempt, State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)
    still_queued()
    assert ByHand().claim() == []
    let_retries_come_due()


def die(attempt: Attempt) -> None:
    report(attempt, State.DEAD, outcome="dead", error="bad")


def be_killed(_: Attempt) -> None:
    assert ByHand("worker-b").claim() == []
    let_leases_run_out()
    assert rescue() == 1
    still_queued()


@pytest.mark.parametrize(
    ("end", "states_after", "run_afterwards"),
    [
        pytest.param(succeed, ["processed", "processed"], [[2, 3, 4]], id="a: success"),
        pytest.param(retry, ["processed", "processed"], [[1], [2, 3, 4]], id="b: retry in an hour"),
        pytest.param(die, ["dead", "processed"], [[2, 3, 4]], id="c: dead"),
        pytest.param(be_killed, ["processed", "processed"], [[1], [2, 3, 4]], id="d: killed"),
    ],
)
def test_one_successor_takes_the_later_inputs_once_the_first_has_ended(
    end: Callable[[Attempt], None], states_after: list[str], run_afterwards: list[list[int]]
) -> None:
    with recording() as seen:
        _, attempt = running(seen)
        assert [one.ordinal for one in attempt.inputs] == [1]
        end(attempt)
        drain_claims()
    assert states("S") == states_after
    assert [inputs for _, _, inputs in seen.runs] == run_afterwards


@pytest.mark.parametrize("atomic", [False, True], ids=["plain", "atomic"])
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "in one delivery"])
def test_a_burst_of_50_changes_while_the_generation_runs_makes_two_executions(atomic: bool, at_once: bool) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))

    def burst(_: Generation) -> None:
        _from_outside(lambda: ingress.admit(*changes(7, 49)) if at_once else [ingress.admit(change(7)) for _ in range(49)])

    with recording(atomic=atomic) as seen:
        seen.acts.append(burst)
        assert drain_claims() == 2
        assert drain_claims() == 0
    assert [len(inputs) for _, _, inputs in seen.runs] == [1, 49]
    assert seen.inputs == ordinals(7) == list(range(1, 51))
    assert states(7) == ["processed", "processed"]


def _from_outside(act: Callable[[], object]) -> None:
    """Run `act` on a connection of its own, as another process would."""
    import threading

    from django.db import connection

    failed: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001  # handed to the flow, which raises it
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def test_changes_that_keep_arriving_are_each_executed_once() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording() as seen:
        seen.acts += [lambda _: ingress.admit(*changes(7, 3))] * 9
        assert drain_claims() == 10
    assert seen.inputs == ordinals(7) == list(range(1, 29))
    assert len(seen.runs) == 10
