"""What statements read does not depend on what the optimizer believes: no statement of the engine reads a table for a few of its rows.

Statistics are from a while ago, or sampled, or count all NULLs as one value: a projection that comes to an installation which had none
looks as if every row belonged to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from connectors.registry import installed_packs
from connectors.retention.receipts import prune_receipts
from projection.claiming.rescue import rescue
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.integrity.invariants import audit
from projection.integrity.repair import repair
from projection.models import Event, WorkItem
from projection.replay.discard import discard
from projection.replay.preview import preview_replays
from projection.replay.replay import replay_many
from projection.retention.cut_offs import CutOffs
from projection.retention.prune import prune
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import Ingress, change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.server_work import believed_statistics, server_work
from tests.support.workers_by_hand import ByHand, let_leases_run_out

pytestmark = pytest.mark.usefixtures("database")

OTHERS = 3000
FEW = 600
"""Rows that a statement of one step may read: ten sources, their lanes and items, and the server's own sorts of them."""
WALKS = 10
"""Reads for each row of a statement that looks at all of them: audit, repair."""
TABLES = ("_System_ConnectorEvent", "_System_ConnectorWorkItem", "_System_ConnectorWorkFailure", "_System_ConnectorReceipt")


def rows_read_so_far() -> int:
    """By this connection; asked beside Django, whose wrappers this is called by."""
    connection.ensure_connection()
    with connection.connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in cursor.fetchall())


@contextmanager
def reads_counted() -> Iterator[Counter[str]]:
    """Rows read by the most expensive call of each statement."""
    found: Counter[str] = Counter()

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        before = rows_read_so_far()
        result = execute(sql, params, many, context)
        found[sql[:160]] = max(found[sql[:160]], rows_read_so_far() - before)
        return result

    with connection.execute_wrapper(count):
        yield found


def crowd() -> Ingress:
    """Ended work of many other sources: projections of twenty generations, and per-event items."""
    ingress = open_ingress()
    ingress.route(on=("changed",))
    ingress.route("action", mode="per_event", kind="deal.action", on=("action",))
    ingress.admit(change("base"), change("base", kind="action"))
    with recording():
        drain_claims()
    few = "SHA2(CONCAT('k', FLOOR(n / 20)), 256)"
    for projected, ordinal in ((True, 100_000), (False, 900_000)):
        event = Event.objects.get(projection_key__isnull=not projected)
        item = WorkItem.objects.get(event_id=event.id)
        newest = Event.objects.order_by("-id").values_list("id", flat=True)[0]
        key = {"ProjectionKey": few} if projected else {}
        order = f"n + {ordinal}"
        its = {"SourceId": "CONCAT('s', n)", "SourceKey": hashed("s"), "ReceiptId": order, **key}
        copy_rows(event, OTHERS, DeliveryKey=hashed(f"d{projected}"), EnqueueOrdinal=order, **its)
        first = Event.objects.filter(id__gt=newest).order_by("id").values_list("id", flat=True)[0]
        lane = {"LaneKey": few, "SourceScopeKey": few, "LaneOrdinal": order, "LanePosition": order, "EventId": f"{first} + n"}
        copy_rows(item, OTHERS, WorkId=hashed(f"w{projected}"), **lane, **key)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE `_System_ConnectorNamespace` SET NextEnqueueOrdinal = 2000000")
    return ingress


def dead_letters() -> list[str]:
    """Read beside Django: a question of the test's alone."""
    with connection.connection.cursor() as cursor:
        cursor.execute("SELECT WorkId FROM `_System_ConnectorWorkItem` WHERE State = 'dead' ORDER BY Id")
        return [row[0] for row in cursor.fetchall()]


def a_day(ingress: Ingress) -> None:
    """Everything that happens to ten sources: new, advanced, repeated, dead, replayed, rescued, discarded."""
    sources = range(10)
    events = [*[change(n) for n in sources], *[change(n, kind="action") for n in sources]]
    with recording() as seen:
        ingress.admit(*events)
        ingress.admit(*events, *[change(n) for n in sources])
        seen.raises += [DeadLetter("bad")] * 4
        drain_claims()
        dead = dead_letters()
        preview_replays(dead)
        replay_many(dead[:3], actor="a", reason="r")
        discard(dead[3], actor="a", reason="r")
        ByHand().claim(5)
        ingress.admit(*[change(n) for n in sources])
        let_leases_run_out()
        rescue()
        drain_claims()


@pytest.mark.parametrize(("distinct", "rows"), [(1, 1_000_000), (0, 3000), (1_000_000, 1_000_000)])
def test_no_statement_reads_the_rows_of_others(distinct: int, rows: int) -> None:
    ingress = crowd()
    installed_packs.of.forget()
    with believed_statistics(TABLES, distinct=distinct, rows=rows):
        with reads_counted() as found:
            a_day(ingress)
        assert {sql: count for sql, count in found.items() if count > FEW} == {}
        before = clock.now() - timedelta(days=30)
        with server_work() as work:
            prune(CutOffs(before, before), dry_run=True)
            prune_receipts(before)
        assert work.rows_read < FEW, "nothing is old"
        with reads_counted() as walked:
            repair(dry_run=True)
            assert audit().checked
        assert {sql: count for sql, count in walked.items() if count > WALKS * 2 * OTHERS} == {}
        after = clock.now() + timedelta(days=1)
        with reads_counted() as pruned:
            prune(CutOffs(after, after), dry_run=True)
        assert {sql: count for sql, count in pruned.items() if count > WALKS * OTHERS} == {}
