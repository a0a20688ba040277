"""A stored deadline is never changed by a later admission, to the microsecond or as whole seconds (docs/protocol.md#settle)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from projection.execution.worker import drain_claims
from projection.models import Event
from tests.support.altered_columns import altered
from tests.support.deliveries import Ingress, change, generations, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import at

pytestmark = pytest.mark.usefixtures("sound_database")

START = datetime(2026, 5, 5, 5, 5, 0, 250123, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture(params=["microseconds", "whole seconds"])
def precision(request: pytest.FixtureRequest, database: None) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "whole seconds":
            stack.enter_context(altered("_System_ConnectorEvent", NextAttemptAt="DATETIME NULL"))
            stack.enter_context(altered("_System_ConnectorWorkItem", RunAfter="DATETIME NOT NULL"))
        yield request.param


def single(ingress: Ingress, first: dict[str, Any]) -> int:
    return ingress.admit(change(7)).events


def fresh_batch(ingress: Ingress, first: dict[str, Any]) -> int:
    return ingress.admit(change(8), change(7), change(7)).events - 1


def batch_with_a_duplicate(ingress: Ingress, first: dict[str, Any]) -> int:
    report = ingress.admit(first, change(7), change(9))
    assert report.duplicates == 1
    return report.events - 1


@pytest.mark.parametrize("come", [single, fresh_batch, batch_with_a_duplicate])
def test_the_stored_deadline_stands(precision: str, come: Callable[[Ingress, dict[str, Any]], int]) -> None:
    ingress = open_ingress()
    ingress.route(settle=5.0)
    first = change(7)
    with at(START):
        ingress.admit(first)
    deadline = Event.objects.get().next_attempt_at
    assert deadline is not None
    exact = START + timedelta(seconds=5)
    assert deadline == (exact if precision == "microseconds" else exact.replace(microsecond=0))
    assert [item.run_after for item in generations(7)] == [deadline]
    with at(START + timedelta(seconds=1)):
        later = come(ingress, first)
    assert set(Event.objects.filter(source_id="7").values_list("next_attempt_at", flat=True)) == {deadline}
    assert [item.run_after for item in generations(7)] == [deadline]
    with recording() as seen:
        with at(deadline - MICROSECOND):
            assert drain_claims() == 0
        with at(deadline):
            assert drain_claims() == 1
    assert len(seen.inputs) == 1 + later
