"""Admission and completion of one projection or lane, one waiting for the other: nothing lost, nothing stranded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from connectors.routing.router import drain_receipts
from projection.claiming.rescue import rescue
from projection.database.transactions import run_unit
from projection.execution.attempts import Attempt
from projection.execution.worker import drain_claims
from projection.facts import RetryPolicy
from projection.models import WorkItem
from projection.replay.cancel import _cancel, cancel
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import Recorder, recording
from tests.support.rivals import Rival, admission_open, completion_open
from tests.support.workers_by_hand import ByHand, let_leases_run_out, report

pytestmark = pytest.mark.usefixtures("sound_database")

ENDS = pytest.mark.parametrize("end", [State.PROCESSED, State.SKIPPED, State.DEAD])


def projection() -> Ingress:
    ingress = open_ingress()
    ingress.route(retry=RetryPolicy(base=0))
    return ingress


def inputs_once(seen: Recorder, expected: list[list[int]]) -> None:
    drain_claims()
    assert [inputs for _, _, inputs in seen.runs] == expected


@ENDS
def test_admission_waits_for_a_completion_that_promotes_the_successor(end: State) -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.admit(*changes(7, 2))
        ingress.send(change(7))
        with completion_open([attempt], end):
            rival = Rival(drain_receipts)
            rival.waits()
        assert rival.result().events == 1
        first, successor = generations(7)
        assert (first.state, successor.state, successor.lane_ordinal) == (end, "pending", 4)
        assert successor.projection_active_key == successor.projection_key
        inputs_once(seen, [[2, 3, 4]])


@ENDS
def test_admission_waits_for_a_completion_without_a_successor(end: State) -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.send(change(7))
        with completion_open([attempt], end):
            rival = Rival(drain_receipts)
            rival.waits()
        rival.result()
        assert states(7) == [end, "pending"]
        inputs_once(seen, [[2]])


@ENDS
def test_a_completion_waits_for_the_admission_and_promotes_what_it_wrote(end: State) -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        with admission_open(ingress, *changes(7, 2)):
            rival = Rival(lambda: report(attempt, end))
            rival.waits()
        assert rival.result().activated == 1
        assert states(7) == [end, "pending"]
        inputs_once(seen, [[2, 3, 4]])


def test_a_completion_waits_for_the_admission_that_makes_the_first_successor() -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        with admission_open(ingress, *changes(7, 2)):
            rival = Rival(lambda: report(attempt))
            rival.waits()
        assert rival.result().activated == 1
        inputs_once(seen, [[2, 3]])


def test_a_retry_waits_for_the_admission_and_leaves_the_successor_queued() -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        with admission_open(ingress, *changes(7, 2)):
            rival = Rival(lambda: report(attempt, State.RETRY, outcome="retry", error="no"))
            rival.waits()
        assert rival.result().activated == 0
        assert states(7) == ["retry", "blocked"]
        inputs_once(seen, [[1], [2, 3]])


def _complete(attempt: Attempt) -> None:
    report(attempt)


def _dead_letter(attempt: Attempt) -> None:
    report(attempt, State.DEAD, outcome="dead", error="bad")


ENDINGS = pytest.mark.parametrize("end", [_complete, _dead_letter])


def lane() -> Ingress:
    """A lane of per-event items whose budget is one attempt."""
    ingress = open_ingress()
    ingress.route(mode="per_event", retry=RetryPolicy(attempts=1))
    return ingress


@ENDINGS
def test_what_admission_blocks_is_unblocked_by_the_blocker_that_waits_for_it(end: Callable[[Attempt], None]) -> None:
    ingress = lane()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        with admission_open(ingress, *changes(7, 2)):
            rival = Rival(lambda: end(attempt))
            rival.waits()
        rival.result()
        assert states(7)[1:] == ["pending", "blocked"]
        inputs_once(seen, [[2], [3]])


def test_what_admission_blocks_behind_a_lost_worker_is_unblocked_by_the_rescue_that_did_not_wait_for_it() -> None:
    ingress = lane()
    ingress.admit(change(7))
    with recording() as seen:
        ByHand().claim_one()
        let_leases_run_out()
        with admission_open(ingress, *changes(7, 2)):
            assert Rival(rescue).result() == 0
        assert rescue() == 1
        assert states(7)[1:] == ["pending", "blocked"]
        inputs_once(seen, [[2], [3]])


def test_what_admission_blocks_behind_a_waiting_head_is_unblocked_by_its_cancel() -> None:
    ingress = lane()
    ingress.admit(change(7))
    with recording() as seen:
        head = generations(7)[0].work_id
        with admission_open(ingress, *changes(7, 2)):
            rival = Rival(lambda: cancel(head, actor="me", reason="no"))
            rival.waits()
        rival.result()
        assert states(7) == ["cancelled", "pending", "blocked"]
        inputs_once(seen, [[2], [3]])


def test_admission_that_waits_for_the_blocker_s_end_blocks_nothing_behind_it() -> None:
    ingress = lane()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.send(*changes(7, 2))
        with completion_open([attempt]):
            rival = Rival(drain_receipts)
            rival.waits()
        rival.result()
        assert states(7) == ["processed", "pending", "blocked"]
        inputs_once(seen, [[2], [3]])


def test_the_next_of_a_lane_is_found_although_the_first_candidate_is_cancelled_meanwhile() -> None:
    ingress = lane()
    ingress.admit(*changes(7, 3))
    with recording() as seen:
        attempt = ByHand().claim_one()
        candidate = generations(7)[1].work_id
        with transaction.atomic():
            _cancel(candidate)
            rival = Rival(lambda: report(attempt))
            rival.waits()
        assert rival.result().unblocked == 1
        assert states(7) == ["processed", "cancelled", "pending"]
        inputs_once(seen, [[3]])


def test_a_cancel_that_waits_for_the_completion_moves_the_lane_on() -> None:
    ingress = lane()
    ingress.admit(*changes(7, 3))
    with recording() as seen:
        attempt = ByHand().claim_one()
        candidate = generations(7)[1].work_id
        with completion_open([attempt]):
            rival = Rival(lambda: cancel(candidate, actor="me", reason="no"))
            rival.waits()
        rival.result()
        assert states(7) == ["processed", "cancelled", "pending"]
        inputs_once(seen, [[3]])


def test_a_completion_beside_another_lane_waits_for_nothing() -> None:
    ingress = lane()
    ingress.admit(change(7), change(8))
    with recording():
        attempts = ByHand().claim()
        with admission_open(ingress, change(7)):
            rival = Rival(lambda: report(next(one for one in attempts if one.claimed.item.source_lane == "contact:8")))
            assert not rival.ends_at_once().lost


def test_an_atomic_flow_keeps_no_admission_waiting() -> None:
    ingress = projection()
    ingress.admit(change(7))

    def admit_meanwhile(_: object) -> None:
        assert Rival(lambda: ingress.admit(change(7))).ends_at_once().events == 1

    with recording(atomic=True) as seen:
        seen.acts.append(admit_meanwhile)
        drain_claims()
        assert [inputs for _, _, inputs in seen.runs] == [[1], [2]]


def test_rounds_without_a_forced_order_lose_and_strand_nothing() -> None:
    ingress = projection()
    ingress.route("single", mode="per_event", retry=RetryPolicy(base=0))
    rounds, sources = 15, 3

    def admit_all() -> None:
        for _ in range(rounds):
            ingress.admit(*[change(n) for n in range(sources)])

    with recording() as seen:
        rivals = [Rival(admit_all), Rival(admit_all), Rival(drain_claims), Rival(drain_claims)]
        for rival in rivals:
            rival.result()
        while run_unit("look", lambda: WorkItem.objects.exclude(state="processed").exists()):
            assert drain_claims()
    assert sorted(seen.inputs) == list(range(1, 2 * 2 * rounds * sources + 1))
    assert {item.state for item in WorkItem.objects.all()} == {"processed"}


def test_a_completion_that_waits_for_the_cancel_of_the_successor_hands_nothing_off() -> None:
    ingress = projection()
    ingress.admit(change(7))
    with recording() as seen:
        attempt = ByHand().claim_one()
        ingress.admit(change(7))
        successor = generations(7)[1].work_id
        with transaction.atomic():
            _cancel(successor)
            rival = Rival(lambda: report(attempt))
            rival.waits()
        assert rival.result().activated == 0
        assert states(7) == ["processed", "cancelled"]
        assert {item.projection_active_key for item in generations(7)} == {None}
        ingress.admit(change(7))
        inputs_once(seen, [[3]])
