"""Every step of a work item's life costs the same beside a live backlog that the server's statistics know nothing of.

Statistics lag behind by seconds on a good day. A plan that is good for the rows of a minute ago must not read the whole backlog of now:
so no step may depend on what the optimizer believes. 16,000 items of other lanes wait (pending, settling, blocked, retry), and 20
are executed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from connectors.registry import installed_packs
from connectors.routing.router import drain_receipts
from projection.claiming import rescue
from projection.database import clock
from projection.execution.attempts import Attempt
from projection.models import Event, WorkItem
from projection.replay import cancel, replay
from projection.states import State
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.scale import size
from tests.support.server_work import refresh_statistics, server_work
from tests.support.workers_by_hand import ByHand, report

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

BACKLOG = size(20_000, 200_000)
SOURCES = 10
SLACK = 60
"""Rows that a step may read more than on small tables: a deeper tree, a page read twice."""


def cost(work: Callable[[], object]) -> int:
    """Rows read, with what a process remembers for some seconds asked again."""
    installed_packs.of.forget()
    with server_work() as read:
        work()
    return read.rows_read


def a_life(ingress: Ingress) -> dict[str, int]:
    """Rows read by each step of ten sources' generations and ten per-event items, from admission to replay."""
    worker, costs = ByHand(), {}
    sources = range(SOURCES)
    for step in ("created", "advanced"):
        ingress.send(*[change(n) for n in sources], *[change(f"{step}-{n}", kind="action") for n in sources])
        costs[step] = cost(drain_receipts)
    taken = []
    costs["claim"] = cost(lambda: taken.extend(worker.claim(3 * SOURCES)))
    assert len(taken) == 3 * SOURCES
    ingress.send(*[change(n) for n in sources])
    costs["successors"] = cost(drain_receipts)
    costs["complete"] = cost(lambda: report(taken[0]))
    costs["retry"] = cost(lambda: report(taken[1], State.RETRY, outcome="retry", error="later"))
    costs["dead"] = cost(lambda: report(taken[2], State.DEAD, outcome="dead", error="never"))
    dead = taken[2].claimed.item.work_id
    costs["cancel"] = cost(lambda: cancel.cancel(taken[1].claimed.item.work_id, actor="test", reason="test"))
    _now("lease_expires_at", State.PROCESSING)
    costs["rescue"] = cost(rescue.rescue)
    _now("run_after", State.RETRY)
    again: list[Attempt] = []
    costs["claim apart"] = cost(lambda: again.extend(worker.claim(100)))
    assert len(again) == 1, "after a lost worker one item runs alone"
    WorkItem.objects.filter(workers_lost=1).update(workers_lost=0, queue_class="default")
    costs["claim again"] = cost(lambda: again.extend(worker.claim(100)))
    for attempt in again:
        report(attempt)
    for attempt in worker.claim(100):
        report(attempt)
    costs["replay"] = cost(lambda: replay.replay(dead, actor="test", reason="test"))
    for attempt in worker.claim(100):
        report(attempt)
    return costs


def _now(field: str, state: State) -> None:
    """The time of what our worker has, or had, is come; that of the backlog is not."""
    moment = clock.now() - timedelta(seconds=1)
    WorkItem.objects.filter(state=state).exclude(lease_token="other").exclude(lease_owner="other").update(**{field: moment})


def add_backlog(name: str, count: int) -> None:
    """Live items of other lanes and projections, each with an event of its own, `count` in all."""
    event = Event.objects.filter(projection_key__isnull=False).order_by("id")[0]
    item = WorkItem.objects.filter(projection_key=event.projection_key).order_by("id")[0]
    per_state = count // 5
    settling = "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR"
    for place, (state, run_after) in enumerate(
        [("pending", "'2100-01-01'"), ("pending", settling), ("blocked", settling), ("retry", settling), ("processing", settling)]
    ):
        own = f"{name} {place} "
        rows = 20 if state == "processing" else per_state  # as many as workers run at once; rescue looks at all of them
        copy_rows(
            event, rows, DeliveryKey=hashed(own), ProjectionKey=hashed(own), SourceKey=hashed(own),
            EnqueueOrdinal=f"{2_000_000 + place * count} + n",
        )  # fmt: skip
        holds = hashed(own) if state in ("retry", "processing") else "NULL"
        copy_rows(
            item, rows, WorkId=hashed(own), ProjectionKey=hashed(own), ProjectionActiveKey=hashed(own), LaneKey=hashed(own),
            LaneHolderKey=holds, SourceScopeKey=hashed(own), State=f"'{state}'", RunAfter=run_after, TerminalAt="NULL",
            LeaseExpiresAt="'2100-01-01'" if state == "processing" else "NULL", LeaseToken="'other'", LeaseOwner="'other'",
        )  # fmt: skip


def test_no_step_reads_the_backlog_whatever_the_statistics_say() -> None:
    ingress = open_ingress()
    ingress.route(on=("changed",))
    ingress.route("action", mode="per_event", kind="deal.action", on=("action",))
    with recording():
        a_life(ingress)  # what a process asks once
        refresh_statistics("_System_ConnectorEvent", "_System_ConnectorWorkItem", "_System_ConnectorReceipt")
        small = a_life(ingress)
        add_backlog("large", BACKLOG)
        large = a_life(ingress)
    more = {step: (rows, small[step]) for step, rows in large.items() if rows > 1.2 * small[step] + SLACK}
    assert more == {}
