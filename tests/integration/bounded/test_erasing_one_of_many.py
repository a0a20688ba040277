"""Erasing one source reads its own rows, beside many of others; each transaction is short."""

from __future__ import annotations

import pytest
from django.db import connection

from connectors.models import Receipt
from connectors.retention.erase import erase_source
from connectors.retention.erased_bodies import Source
from connectors.retention.erased_sources import find_source
from projection.execution.worker import drain_claims
from projection.models import Event, WorkFailure, WorkItem
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.gates import COMMIT, at_each_statement
from tests.support.rows import failure_row
from tests.support.server_work import full_scans, refresh_statistics, server_work, texts_recorded

pytestmark = pytest.mark.usefixtures("database")

OTHERS = 3000
TABLES = ("_System_ConnectorEvent", "_System_ConnectorWorkItem", "_System_ConnectorWorkFailure", "_System_ConnectorReceipt")


def crowd() -> None:
    """A source with three deliveries; rows of many others, also in its namespace."""
    ingress = open_ingress()
    ingress.route()
    ingress.route("single", mode="per_event")
    for contact in (1, 7, 7, 7):
        ingress.admit(change(contact))
    with recording():
        drain_claims()
    event = Event.objects.filter(source_id="1", projection_key=None)[0]
    item = WorkItem.objects.get(event_id=event.id)
    failure = failure_row(item)
    copy_rows(
        Receipt.objects.get(id=event.receipt_id), OTHERS, IdempotencyHash="NULL", ReceivedAt="t.ReceivedAt + INTERVAL n MICROSECOND"
    )
    copy_rows(event, OTHERS, DeliveryKey=hashed("d"), EnqueueOrdinal="n + 1000", SourceId="CONCAT('x', n)", ReceiptId="n + 100000")
    copy_rows(item, OTHERS, WorkId=hashed("w"), EventId="n + 100000", LaneKey=hashed("l"), SourceLane="CONCAT('x', n)")
    copy_rows(failure, OTHERS, WorkItemId="n + 100000")
    refresh_statistics(*TABLES)


def source() -> Source:
    found = find_source("contact:7", "default")
    assert isinstance(found, Source)
    return found


def test_it_reads_no_table_from_end_to_end_and_few_rows_of_others() -> None:
    crowd()
    one = source()
    refresh_statistics(*TABLES)
    with server_work() as work, texts_recorded() as texts:
        done = erase_source(one, actor="me", reason="asked")
    assert (done.events, done.receipts) == (6, 3)
    assert work.rows_read < OTHERS + 1500, work.counters  # it looks at each receipt since its first, not at their bodies
    assert full_scans({text for text in texts if text.startswith("SELECT") and any(table in text for table in TABLES)}) == []
    assert WorkFailure.objects.filter(error="erased").count() == 0


def test_a_transaction_has_the_same_few_statements_for_one_event_and_for_ninety() -> None:
    def longest() -> int:
        counts = [0]

        def count(sql: str) -> None:
            if sql == COMMIT:
                counts.append(0)
            elif connection.in_atomic_block:
                counts[-1] += 1

        with at_each_statement(count):
            assert erase_source(source(), actor="me", reason="asked").events
        return max(counts)

    ingress = open_ingress()
    ingress.route()
    found = []
    for events in (1, 90):
        ingress.admit(*(change(7) for _ in range(events)))
        with recording():
            drain_claims()
        found.append(longest())
    assert found[1] <= found[0] + 2, found
    assert found[1] < 30
