"""Admission and claim cost the same beside a large history as on empty tables (docs/protocol.md#bounded-history).

20,000 events and 4,000 terminal generations in every suite; 1,000,000 and 200,000 at full scale (TEST_SCALE=full). On empty
tables the optimizer scans the few rows that there are, so each step alone is compared with a small history, and the sum with none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from connectors.bench.workbench import texts_sent
from connectors.registry import installed_packs
from connectors.routing.router import drain_receipts
from projection.database import clock
from projection.models import Event, WorkItem
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.scale import size
from tests.support.server_work import refresh_statistics, server_work
from tests.support.workers_by_hand import ByHand, report

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale, pytest.mark.timeout(3000)]

EVENTS = size(20_000, 1_000_000)
TERMINAL = size(4_000, 200_000)
TABLES = ("_System_ConnectorEvent", "_System_ConnectorWorkItem")
SOURCES = 50


def cost(work: Callable[[], object]) -> tuple[int, int]:
    """(statements, rows read), with what a process remembers for some seconds asked again."""
    installed_packs.of.forget()
    with server_work() as read, texts_sent() as texts:
        work()
    return texts.count, read.rows_read


def round_of_work(ingress: Ingress) -> dict[str, tuple[int, int]]:
    """Costs of new generations of 50 sources, of advancing them, claiming them and completing them, always the same sources."""
    sources = range(SOURCES)
    costs = {}
    for step in ("created", "advanced"):
        ingress.send(*[change(n) for n in sources], *[change(f"{step}-{n}", kind="action") for n in sources])
        costs[step] = cost(drain_receipts)
    attempts = []
    costs["claim"] = cost(lambda: attempts.extend(ByHand().claim(3 * SOURCES)))
    assert len(attempts) == 3 * SOURCES
    costs["complete"] = cost(lambda: [report(one) for one in attempts[:5]])
    for one in attempts[5:]:
        report(one)
    return costs


def grow(events: int, terminal: int, name: str) -> None:
    """Finished work of a thousand other sources, and deep histories of the last of ours."""
    event = Event.objects.filter(projection_key__isnull=False).order_by("id")[0]
    item = WorkItem.objects.filter(projection_key=event.projection_key).order_by("id")[0]
    ordinals = {"EnqueueOrdinal": "1000000 + n", "DeliveryKey": hashed(name)}
    copy_rows(event, events, ProjectionKey=hashed("source"), SourceKey=hashed("source"), **ordinals)
    ended = {"State": "'processed'", "TerminalAt": "UTC_TIMESTAMP(6)", "ProjectionActiveKey": "NULL", "LaneHolderKey": "NULL"}
    history = "SHA2(CONCAT('source', n MOD 1000), 256)"
    for ours in WorkItem.objects.filter(execution_class="projection").order_by("-id")[:5]:
        deep = {"WorkId": hashed(f"{name} {ours.id} "), "LaneOrdinal": "1", "EventId": "n + 1000000"}
        copy_rows(ours, terminal // 10, **deep, **ended)
    copy_rows(
        item, terminal // 2, WorkId=hashed(name), LaneKey=history, ProjectionKey=history, LaneOrdinal="1000000 + n",
        EventId="t.EventId + 1000000 + n", **ended,
    )  # fmt: skip
    refresh_statistics(*TABLES)


def test_admission_and_claim_cost_the_same_as_on_empty_tables() -> None:
    ingress = open_ingress()
    ingress.route(on=("changed",))
    ingress.route("action", mode="per_event", kind="deal.action", on=("action",))
    with recording():
        round_of_work(ingress)  # what a process asks once
        refresh_statistics(*TABLES)
        empty = round_of_work(ingress)
        grow(2_000, 400, "small")
        small = round_of_work(ingress)
        grow(EVENTS, TERMINAL, "large")
        large = round_of_work(ingress)
    assert {step: one[0] for step, one in large.items()} == {step: one[0] for step, one in empty.items()}
    for step, (_, rows) in small.items():
        assert large[step][1] <= 1.1 * rows, (step, small, large)
    assert sum(one[1] for one in large.values()) <= 1.1 * sum(one[1] for one in empty.values()), (empty, large)


def test_a_claim_reads_no_more_when_many_items_wait() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(SOURCES)])
    waiting = WorkItem.objects.order_by("id")[0]
    with recording():
        ByHand().claim(1)  # what a process asks once
        alone = cost(lambda: ByHand().claim(5))
        later = {"State": "'pending'", "RunAfter": "t.RunAfter + INTERVAL 1 DAY", "LaneHolderKey": "NULL", "LeaseToken": "NULL"}
        copy_rows(waiting, EVENTS, WorkId=hashed("settling"), LaneKey=hashed("lane"), **later)
        copy_rows(
            waiting,
            EVENTS // 4,
            WorkId=hashed("queued"),
            State="'blocked'",
            LaneHolderKey="NULL",
            LanePosition="t.LanePosition + n + 1",
        )
        refresh_statistics(*TABLES)
        beside = cost(lambda: ByHand().claim(5))
    assert beside[0] == alone[0]
    assert beside[1] <= 1.1 * alone[1], (alone, beside)


def test_a_claim_that_finds_nothing_due_costs_one_statement() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(1))
    WorkItem.objects.update(run_after=clock.now() + timedelta(days=1))
    copy_rows(WorkItem.objects.get(), EVENTS, WorkId=hashed("settling"), LaneKey=hashed("lane"))
    refresh_statistics(*TABLES)
    with recording():
        statements, rows = cost(lambda: ByHand().claim(5))
    assert statements == 1
    assert rows <= 20
