"""Admission over chunk borders: each input exactly once, and a failure in a later chunk leaves nothing of an earlier one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DataError

from connectors.models import Namespace, Receipt
from connectors.routing.router import drain_receipts
from projection.execution.worker import drain_claims
from projection.models import Event, WorkItem
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, at_each_statement, is_statement
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")

KEYS = 260
"""More than two chunks of 128."""


@pytest.fixture
def ingress() -> Ingress:
    found = open_ingress()
    found.route()
    return found


def test_455_inputs_over_260_projections_run_exactly_once(ingress: Ingress) -> None:
    with recording(atomic=True) as seen:
        ingress.admit(*[change(n) for n in range(KEYS)])
        attempts = ByHand().claim(KEYS)
        assert len(attempts) == KEYS
        ingress.admit(*[change(n) for n in range(100, 165)])  # a quarter of them gets a successor, over the first border
        ingress.admit(*[change(n) for n in range(65, 195)])  # new ones, and advanced ones in the middle
        assert WorkItem.objects.filter(state="blocked", projection_active_key=None).count() == 130
        for attempt in attempts:
            seen.runs.append((attempt.claimed.item.work_id, 1, [one.ordinal for one in attempt.inputs]))
        report_all(attempts)
        assert drain_claims() == 130
    assert len(seen.inputs) == 455
    assert sorted(seen.inputs) == list(range(1, 456))


def report_all(attempts: list[Any]) -> None:
    for attempt in attempts:
        assert report(attempt).lost == []


def rows() -> tuple[list[dict[str, Any]], int, int]:
    return list(WorkItem.objects.order_by("id").values()), Event.objects.count(), Namespace.objects.get().next_enqueue_ordinal


@pytest.mark.parametrize(("name", "good_ones"), [("advance_generations", 1), ("insert_work_items", 0)])
def test_a_failure_after_the_first_chunk_rolls_it_back_and_the_retry_keeps_all_identities(
    ingress: Ingress, name: str, good_ones: int
) -> None:
    ingress.admit(*[change(n) for n in range(KEYS)])
    before = rows()
    ingress.send(*[change(n) for n in range(KEYS)], *[change(f"new-{n}") for n in range(KEYS)])
    sent = 0

    def fail(sql: str) -> None:
        nonlocal sent
        if sql != COMMIT and is_statement(name, sql):
            sent += 1
            if sent % (good_ones + 1) == 0:
                raise DataError(1406, "this chunk is invalid")

    with at_each_statement(fail):
        outcome = drain_receipts()
    assert sent == 2 * (good_ones + 1), "once in its batch and once alone"
    assert (outcome.events, outcome.deferred) == (0, 1)
    assert rows() == before, "nothing of the first chunk, and none of the events"
    assert Receipt.objects.filter(state="pending").count() == 1
    Receipt.objects.update(next_attempt_at=None)
    assert drain_receipts().events == 2 * KEYS
    assert sorted(Event.objects.values_list("enqueue_ordinal", flat=True)) == list(range(1, 3 * KEYS + 1))
    items = WorkItem.objects.order_by("lane_position")
    assert [item.work_id for item in items] == [item.projection_key for item in items], "the identities of a first admission"
    assert [item.lane_ordinal for item in items] == list(range(KEYS + 1, 3 * KEYS + 1))
