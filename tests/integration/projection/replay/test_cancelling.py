"""Cancel: an operator ends work that nobody executes; whatever waited for it moves on."""

from __future__ import annotations

from typing import Any

import pytest

from projection.execution.worker import drain_claims
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.cancel import Cancelled, cancel
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def with_route(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(**options)
    return ingress


def cancelled(item: WorkItem) -> bool:
    return cancel(item.work_id, actor="me", reason="not wanted") == Cancelled(item.work_id)


def refusal(work_id: str) -> str:
    found = cancel(work_id, actor="me", reason="not wanted")
    assert isinstance(found, Refused)
    return found.code


def test_a_waiting_head_is_cancelled_and_its_lane_moves_on() -> None:
    with_route(mode="per_event").admit(*changes(7, 3))
    assert cancelled(generations(7)[0])
    assert states(7) == ["cancelled", "pending", "blocked"]
    assert generations(7)[0].terminal_at is not None
    with recording() as seen:
        drain_claims()
    assert seen.inputs == [2, 3]


def test_a_retrying_head_gives_its_lane_up() -> None:
    with_route(mode="per_event").admit(*changes(7, 2))
    with recording():
        report(ByHand().claim_one(), State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)
        assert cancelled(generations(7)[0])
        assert generations(7)[0].lane_holder_key is None
        assert drain_claims() == 1


@pytest.mark.parametrize("running", [True, False], ids=["behind a running head", "behind a waiting head"])
def test_cancelling_a_blocked_item_leaves_its_lane_as_it_is(running: bool) -> None:
    with_route(mode="per_event").admit(*changes(7, 3))
    with recording() as seen:
        head = ByHand().claim_one() if running else None
        assert cancelled(generations(7)[1])
        assert states(7) == ["processing" if running else "pending", "cancelled", "blocked"]
        if head:
            report(head)
        drain_claims()
    assert seen.inputs == ([3] if running else [1, 3])


def test_cancelling_the_active_generation_activates_its_successor() -> None:
    ingress = with_route()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.admit(*changes(7, 2))
        report(attempt, State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)
        assert cancelled(generations(7)[0])
        assert states(7) == ["cancelled", "pending"]
        drain_claims()
    assert seen.inputs == [2, 3]


def test_a_cancelled_unclaimed_generation_bounds_what_comes_after_it() -> None:
    ingress = with_route()
    ingress.admit(change(7))
    assert cancelled(generations(7)[0])
    ingress.admit(change(7))
    with recording() as seen:
        drain_claims()
    assert (states(7), seen.inputs) == (["cancelled", "processed"], [2])


def test_a_queued_successor_is_cancelled_and_the_running_one_goes_on() -> None:
    ingress = with_route()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        assert cancelled(generations(7)[1])
        assert report(attempt).activated == 0
        ingress.admit(change(7))
        drain_claims()
    assert (states(7), seen.inputs) == (["processed", "cancelled", "processed"], [3])


def test_work_that_runs_or_has_ended_is_not_cancelled() -> None:
    with_route(mode="per_event").admit(change(7))
    with recording():
        attempt = ByHand().claim_one()
        work_id = attempt.claimed.item.work_id
        assert refusal(work_id) == "processing"
        report(attempt)
        assert refusal(work_id) == "terminal"
    assert states(7) == ["processed"]


@pytest.mark.parametrize("work_id", ["", "csp:unknown", "évt", "\udc80", "x" * 500])
def test_what_does_not_exist_is_not_found(work_id: str) -> None:
    with_route(mode="per_event").admit(change(7))
    assert refusal(work_id) == "not_found"


def test_an_id_that_the_database_takes_for_another_one_is_not_found() -> None:
    with_route(mode="per_event").admit(change(7))
    work_id = generations(7)[0].work_id
    assert {refusal(work_id.upper()), refusal(work_id + " ")} == {"not_found"}
    assert states(7) == ["pending"]
