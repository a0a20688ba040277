"""A duplicate changes nothing, whatever its provider time says and whatever became of the work (see also test_admission)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection.execution.attempts import Attempt
from projection.execution.worker import drain_claims
from projection.models import Event, WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.gates import Gate, stopped_at
from tests.support.rivals import Rival
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")

TIMES = {
    "older": ("2026-05-05T05:05:05Z", "2026-05-05T05:05:01Z"),
    "equal": ("2026-05-05T05:05:05Z", "2026-05-05T05:05:05Z"),
    "missing": ("2026-05-05T05:05:05Z", None),
}


def rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return list(WorkItem.objects.order_by("id").values()), list(Event.objects.order_by("id").values())


def unclaimed(ingress: Ingress) -> None:
    return None


def processing(ingress: Ingress) -> None:
    ByHand().claim_one()


def processing_with_successor(ingress: Ingress) -> None:
    ByHand().claim_one()
    ingress.admit(change(7))


def waiting_to_retry(ingress: Ingress) -> None:
    report(ByHand().claim_one(), State.RETRY, outcome="retry", error="no", delay_ms=3_600_000)


def ended(state: State) -> Callable[[Ingress], None]:
    def end(ingress: Ingress) -> None:
        report(ByHand().claim_one(), state, **({"outcome": "dead", "error": "no"} if state is State.DEAD else {}))

    return end


SITUATIONS = {
    "unclaimed": unclaimed,
    "processing": processing,
    "processing with a successor": processing_with_successor,
    "waiting to retry": waiting_to_retry,
    "processed": ended(State.PROCESSED),
    "dead": ended(State.DEAD),
}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("time", TIMES)
def test_a_duplicate_of_any_event_changes_no_row(time: str, situation: str) -> None:
    ingress = open_ingress()
    ingress.route()
    first, second = (change(7, **({"at": at} if at else {})) for at in TIMES[time])
    ingress.admit(first, second)
    assert [event.provider_timestamp is None for event in Event.objects.order_by("id")] == [False, time == "missing"]
    with recording():
        SITUATIONS[situation](ingress)
        before = rows()
        for batch in ([first], [second], [second, first], [first, first, second]):
            outcome = ingress.admit(*batch)
            assert (outcome.events, outcome.duplicates, outcome.repaired, outcome.conflicts) == (0, len(batch), 0, 0)
        assert rows() == before
        mixed = ingress.admit(second, change(8), first)
        assert (mixed.events, mixed.duplicates) == (1, 2)
        assert rows()[0][:-1] == before[0]
    assert Receipt.objects.exclude(state="routed").count() == 0


def test_a_covered_duplicate_that_waited_across_anothers_enqueue_and_completion_changes_nothing() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    ingress.admit(event)
    with recording() as seen:
        attempt: Attempt = ByHand().claim_one()
        ingress.send(change(7))
        with stopped_at(Gate("COMMIT"), drain_receipts) as enqueue:
            ingress.send(event)
            duplicate = Rival(lambda: drain_receipts(batch=1))
            duplicate.waits()
            completion = Rival(lambda: report(attempt))
            completion.waits()
        assert enqueue.result().events >= 1
        assert completion.result().activated == 1
        waited = duplicate.result()
        assert (waited.events, waited.duplicates, waited.repaired) in {(0, 1, 0), (0, 0, 0)}
        assert drain_receipts().events == 0
        assert states(7) == ["processed", "pending"]
        drain_claims()
    assert seen.inputs == [2]
