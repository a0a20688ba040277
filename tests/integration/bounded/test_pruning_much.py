"""A large history is pruned in bounded pieces, beside a running ingress."""

from __future__ import annotations

import re
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from django.db import connection

from connectors.models import Receipt
from connectors.retention.prune import Retained, retain
from connectors.routing.router import drain_receipts
from projection.database import transactions as unit_log
from projection.database.clock import now
from projection.execution.worker import drain_claims
from projection.models import Event, WorkFailure, WorkItem
from projection.retention.oldest_ends import EVENTS_A_UNIT, GENERATIONS_A_UNIT
from tests.conftest import empty_tables
from tests.support.bulk_rows import copy_rows, hashed, make_old
from tests.support.deliveries import Ingress, change, changes, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, Gate, at_each_statement, stopped_at
from tests.support.rivals import Rival
from tests.support.rows import PAGES, event_row, failure_row, work_row
from tests.support.scale import size
from tests.support.server_work import full_scans, refresh_statistics, server_work, texts_recorded

pytestmark = pytest.mark.usefixtures("database")

HISTORY = size(14_000, 350_000)
"""Per-event items; with the projections half as many again."""
STATEMENTS_A_UNIT = 35
"""Of the transaction that touches the most projections: twenty, each with its own range."""
ROWS_A_UNIT = 4 * EVENTS_A_UNIT
"""Rows deleted in one transaction: events, items and failures."""
TABLES = ("_System_ConnectorEvent", "_System_ConnectorWorkItem", "_System_ConnectorWorkFailure", "_System_ConnectorReceipt")
OLD = timedelta(days=120)
MOST_GROWN_MIB = 32
"""A dry run remembers what would be gone by then: some bytes for each row. Nothing else grows with the history."""


def receipt_of(event: Event, **columns: Any) -> Receipt:
    """The receipt that an event came in by."""
    values: dict[str, Any] = {
        "namespace": "default",
        "pack_id": 1,
        "pack_incarnation": "incarnation-1",
        "endpoint_id": 1,
        "body": b"{}",
        "body_sha256": "0" * 64,
        "headers": "{}",
        "received_at": now() - OLD,
        "state": "routed",
        **columns,
    }
    made = Receipt.objects.create(**values)
    Event.objects.filter(id=event.id).update(receipt_id=made.id)
    event.receipt_id = made.id
    return made


def first_after(model: type[Event | WorkItem | Receipt], id: int) -> int:
    """Id of the first of the rows that were made last."""
    return int(model.objects.filter(id__gt=id).order_by("id").values_list("id", flat=True)[0])


def history(count: int, age: timedelta = OLD) -> None:
    """`count` per-event items with a failure each, one projection of `count` / 4 generations, as many of two; all ended `age` ago."""
    event = event_row(PAGES, created_date=now() - age)
    item = work_row(event, "processed", terminal_at=now() - age)
    receipt = receipt_of(event, received_at=now() - age)
    failure = failure_row(item)
    copy_rows(receipt, count, ReceivedAt="t.ReceivedAt + INTERVAL n SECOND")
    receipts = first_after(Receipt, receipt.id)
    ended = {"TerminalAt": "t.TerminalAt + INTERVAL n SECOND"}
    copy_rows(event, count, DeliveryKey=hashed("d"), EnqueueOrdinal="n + 1000", ReceiptId=f"{receipts} + n")
    events = first_after(Event, event.id)
    copy_rows(item, count, WorkId=hashed("w"), EventId=f"{events} + n", LaneOrdinal="n + 1000", **ended)
    copy_rows(failure, count, WorkItemId=f"{first_after(WorkItem, item.id)} + n")
    for name, key, ordinal in (("one", "'one'", "n + 1"), ("few", "SHA2(CONCAT('k', FLOOR(n / 2)), 256)", "n % 2 + 1")):
        newest = Event.objects.order_by("-id").values_list("id", flat=True)[0]
        its = {"ProjectionKey": key, "ReceiptId": f"{receipts} + n", "DeliveryKey": hashed(f"e{name}")}
        copy_rows(event, count // 4, EnqueueOrdinal=ordinal, **its)
        selected = {"LaneOrdinal": ordinal, "EventId": f"{first_after(Event, newest)} + n", "ProjectionKey": key}
        copy_rows(item, count // 4, WorkId=hashed(f"v{name}"), ExecutionClass="'projection'", **selected)
    refresh_statistics(*TABLES)


def expected(count: int) -> Retained:
    """All but the newest generation of each projection, and but the receipts of those."""
    part = count // 4
    gone = count + 1 + part - 1 + part // 2
    kept_receipts = part // 2 + (1 if (part - 1) % 2 == 0 else 0)
    return Retained(gone, gone, count + 1 - kept_receipts)


class Units:
    """What each transaction sent, deleted and took."""

    def __init__(self) -> None:
        self.statements: list[int] = []
        self.deleted: list[int] = []
        self.seconds: list[float] = []
        self._now = Counter[str]()
        self._since = 0.0

    def meet(self, sql: str) -> None:
        if sql == COMMIT:
            self.statements.append(self._now["statements"])
            self.deleted.append(self._now["deleted"])
            self.seconds.append(monotonic() - self._since)
            self._now.clear()
        elif connection.in_atomic_block:
            self._since = self._since if self._now["statements"] else monotonic()
            self._now["statements"] += 1
            if sql.startswith("DELETE"):
                with connection.connection.cursor() as cursor:
                    cursor.execute("SELECT ROW_COUNT()")
                    self._now["deleted"] += max(0, int(cursor.fetchone()[0]))


class Memory:
    """By how much the process grows from now on, at most (MiB resident; the kernel keeps the peak)."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
        self._before = self._peak()

    def grown(self) -> float:
        return self._peak() - self._before

    @staticmethod
    def _peak() -> float:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Senders:
    """A provider that posts 50 deliveries a second, and a router, until `stopped`: what became of each, and how long it took."""

    def __init__(self, ingress: Ingress) -> None:
        self.answers: list[str] = []
        self.seconds: list[float] = []
        self.stopped = threading.Event()
        self._ingress = ingress
        self._rivals = [Rival(self._post), Rival(self._route)]

    def _post(self) -> None:
        while not self.stopped.wait(0.02):
            since = monotonic()
            self.answers.append(self._ingress.send(change(len(self.answers) % 50)).code)
            self.seconds.append(monotonic() - since)

    def _route(self) -> None:
        while not self.stopped.wait(0.2):
            drain_receipts()

    def end(self) -> None:
        self.stopped.set()
        for rival in self._rivals:
            rival.result()

    def report(self) -> str:
        """Sorted waits at the middle, at 99 of 100 and at the end, milliseconds."""
        at = sorted(self.seconds)
        points = (at[len(at) // 2], at[len(at) * 99 // 100], at[-1])
        return f"{len(at)} deliveries, p50/p99/max " + "/".join(f"{1000 * point:.1f}" for point in points) + " ms"


def alone(ingress: Ingress, seconds: float = 2.0) -> Senders:
    """The same senders with nothing beside them."""
    senders = Senders(ingress)
    senders.stopped.wait(seconds)
    senders.end()
    return senders


@pytest.mark.timeout(10_800)
def test_a_large_history_goes_in_bounded_pieces_beside_the_ingress_and_the_dry_run_says_how_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    retried: list[dict[str, Any]] = []
    log = unit_log.log_event
    monkeypatch.setattr(unit_log, "log_event", lambda verb, **facts: (retried.append({verb: facts}), log(verb, **facts)))
    history(HISTORY)
    ingress = open_ingress()
    ingress.route()
    memory = Memory()
    assert retain(dry_run=True) == expected(HISTORY)
    before = alone(ingress)
    units, senders, since = Units(), Senders(ingress), monotonic()
    with at_each_statement(units.meet, after=True):
        gone = retain()
    took = monotonic() - since
    senders.end()
    grown = memory.grown()
    assert gone == expected(HISTORY)
    assert max(units.statements) <= STATEMENTS_A_UNIT
    assert GENERATIONS_A_UNIT <= max(units.deleted) <= ROWS_A_UNIT
    assert grown < MOST_GROWN_MIB
    assert set(before.answers + senders.answers) == {"accepted"}
    assert retried == [], "no transaction of either side waited in vain or was a victim"
    drain_receipts()
    assert Receipt.objects.filter(state="routed", received_at__gt=now() - timedelta(hours=1)).count() == len(
        before.answers + senders.answers
    )
    assert (WorkFailure.objects.count(), retain()) == (0, Retained())
    print(  # noqa: T201 - the figures of a full run, shown by -rP
        f"{gone} in {took:.1f} s, {len(units.statements)} transactions: at most {max(units.statements)} statements, "
        f"{max(units.deleted)} rows, {max(units.seconds):.3f} s; {grown:.1f} MiB more memory at most\n"
        f"alone: {before.report()}\nbeside: {senders.report()}"
    )


def test_nothing_reads_a_table_from_end_to_end() -> None:
    history(2000)
    with texts_recorded() as texts:
        retain(dry_run=True)
    distinct = list({text.split("WHERE")[0][:120]: text for text in texts if "SELECT" in text and "_System_" in text}.values())
    assert len(distinct) > 8
    assert full_scans(distinct) == []
    with texts_recorded() as texts:
        retain()
    deletes = list({re.split("[=(]", text)[0]: text for text in texts if text.startswith("DELETE")}.values())
    assert len(deletes) == 5
    empty_tables()
    history(2000)
    assert full_scans(deletes) == []


def test_with_nothing_to_do_young_rows_are_not_read_and_nothing_is_written() -> None:
    history(2000, timedelta())
    refresh_statistics(*TABLES)
    with server_work() as work, texts_recorded() as texts:
        assert retain() == Retained()
    assert work.rows_read < 200, work.counters
    assert not [text for text in texts if not text.startswith(("SELECT", "SHOW"))]


def test_what_is_kept_for_good_costs_a_look_and_no_lock() -> None:
    """The newest generation of each source stays, however old: each run passes over it."""
    history(2000)
    retain()
    kept = WorkItem.objects.count()
    assert kept == 251
    refresh_statistics(*TABLES)
    with server_work() as work, texts_recorded() as texts:
        assert retain() == Retained()
    assert work.rows_read < 16 * kept, work.counters
    assert not [text for text in texts if "FOR UPDATE" in text or "BEGIN" in text]


def test_two_purges_at_once_share_the_work() -> None:
    history(2000)
    total = expected(2000)
    both = [rival.result() for rival in [Rival(retain), Rival(retain)]]
    assert sum(one.work_items for one in both) == total.work_items
    assert sum(one.events for one in both) == total.events
    assert sum(one.receipts for one in both) == total.receipts
    assert retain() == Retained()


def busy() -> Ingress:
    ingress = open_ingress()
    ingress.route()
    for _ in range(3):
        ingress.admit(*changes(7, 2))
        with recording():
            drain_claims()
    make_old()
    return ingress


def test_nothing_of_the_ingress_waits_for_a_purge() -> None:
    """It stands before its commit with all of its locks, on the history of the very source that something comes in for."""
    ingress = busy()
    with stopped_at(Gate(COMMIT), retain) as purge:
        ingress.admit(change(7), change(8))
        with recording() as seen:
            drain_claims()
        assert len(seen.inputs) == 2
    assert purge.result().work_items == 2
