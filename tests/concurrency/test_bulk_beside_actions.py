"""400 sources with 10 changes each and 400 interactive actions, from receive to completion: every input once and in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from connectors.models import Receipt
from connectors.routing.router import drain_receipts
from projection import flows
from projection.execution.worker import drain_claims
from projection.flows import Generation
from projection.models import Event, WorkItem
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.rivals import Rival

pytestmark = pytest.mark.usefixtures("sound_database")

SOURCES, CHANGES, ACTIONS = 400, 10, 400
A_RECEIPT = 100


@contextmanager
def inputs_by_source() -> Iterator[dict[str, list[int]]]:
    """Ordinals that the flow was given, by source, in order of execution.

    A transaction that a conflict rolled back runs its flows again in the same attempt; memory does not roll back, so the run of an
    attempt that counts is its last one.
    """
    seen: dict[str, list[int]] = defaultdict(list)
    last: dict[tuple[str, int], int] = {}

    def run(generation: Generation) -> None:
        lane, attempt = seen[generation.source_lane], (generation.work_id, generation.attempt)
        if attempt in last:
            del lane[last[attempt] :]
        last[attempt] = len(lane)
        lane += [one.ordinal for one in generation.inputs]

    flows.flow("test.record", atomic=True)(run)
    try:
        yield seen
    finally:
        flows.forget("test.record")


def with_actions(changes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Deliveries of 100 with the actions spread among the changes."""
    items = list(changes)
    for number in range(ACTIONS):
        items.insert(number * (CHANGES + 1), change(f"action-{number}", kind="action"))
    return [items[at : at + A_RECEIPT] for at in range(0, len(items), A_RECEIPT)]


def interleaved() -> list[dict[str, Any]]:
    return [change(source, v=turn) for turn in range(CHANGES) for source in range(SOURCES)]


def burst() -> list[dict[str, Any]]:
    return [change(source, v=turn) for source in range(SOURCES) for turn in range(CHANGES)]


@pytest.fixture
def ingress() -> Ingress:
    found = open_ingress()
    found.route(on=("changed",), queue_class="bulk")
    found.route("action", mode="per_event", kind="deal.action", on=("action",), queue_class="interactive")
    return found


def check_all_ran_once_and_in_order(seen: dict[str, list[int]]) -> None:
    by_lane: dict[str, list[int]] = defaultdict(list)
    for lane, ordinal in Event.objects.order_by("enqueue_ordinal").values_list("source_lane", "enqueue_ordinal"):
        by_lane[lane].append(ordinal)
    assert sum(len(ordinals) for ordinals in by_lane.values()) == SOURCES * CHANGES + ACTIONS
    stale = {lane for lane, ordinals in by_lane.items() if not seen[lane] or seen[lane][-1] != ordinals[-1]}
    assert len(stale) == 0, "sources that end on an old version"
    assert dict(seen) == dict(by_lane)
    assert set(WorkItem.objects.values_list("state", flat=True)) == {"processed"}


def print_delays(how: str) -> None:
    """Receipt-to-event delays of the actions."""
    received = dict(Receipt.objects.values_list("id", "received_at"))
    actions = Event.objects.filter(provider_kind="action").values_list("receipt_id", "created_date")
    delays = sorted((created - received[receipt]).total_seconds() for receipt, created in actions)
    assert len(delays) == ACTIONS
    p50, p95 = delays[len(delays) // 2], delays[len(delays) * 95 // 100]
    print(f"{how}: receipt to event of {ACTIONS} actions: p50 {p50:.3f} s, p95 {p95:.3f} s, maximum {delays[-1]:.3f} s")  # noqa: T201  # a figure to report


@pytest.mark.parametrize("arrange", [interleaved, burst])
def test_everything_admitted_first_runs_once_and_in_order(ingress: Ingress, arrange: Any) -> None:
    for delivery in with_actions(arrange()):
        ingress.send(*delivery)
    report = drain_receipts()
    assert (report.events, report.duplicates) == (4_400, 0)
    assert (Event.objects.count(), WorkItem.objects.count()) == (4_400, 800)
    active = list(WorkItem.objects.exclude(projection_active_key=None).values_list("source_lane", flat=True))
    assert (len(active), len(set(active))) == (400, 400), "at most one active generation a source"
    with inputs_by_source() as seen:
        assert drain_claims() == 800
    check_all_ran_once_and_in_order(seen)
    print_delays(arrange.__name__)


def test_what_arrives_while_workers_run_is_run_once_and_in_order(ingress: Ingress) -> None:
    deliveries = with_actions(interleaved())
    done: list[bool] = []

    def work() -> int:
        count = 0
        while (claimed := drain_claims()) or not done:
            count += claimed
        return count

    with inputs_by_source() as seen:
        workers = [Rival(work), Rival(work)]
        for at, delivery in enumerate(deliveries, start=1):
            ingress.send(*delivery)
            if at % 3 == 0:
                drain_receipts()
        drain_receipts()
        done.append(True)
        assert sum(worker.result(120) for worker in workers) + drain_claims() == WorkItem.objects.count()
    assert Event.objects.count() == 4_400
    check_all_ran_once_and_in_order(seen)
    print_delays("live")
