"""A trace costs the same whatever the history holds: of a delivery with very many events, and of a source with very many."""

from __future__ import annotations

import pytest

from connectors.models import Receipt
from connectors.operations.trace import trace
from projection.models import Event, WorkFailure, WorkItem
from tests.support import factories, rows
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.scale import size
from tests.support.server_work import full_scans, refresh_statistics, server_work, texts_recorded

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

EVENTS = size(30_000, 1_000_000)
ITEMS = size(5_000, 200_000)
SHOWN = 100


def look(text: str) -> int:
    """Rows that the server reads for it; nothing is read from end to end."""
    trace(text, SHOWN)
    with server_work() as work:
        assert trace(text, SHOWN).truncated
    with texts_recorded() as texts:
        trace(text, SHOWN)
    assert full_scans(texts) == []
    return work.rows_read


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_a_source_with_very_many_events(statistics: str) -> None:
    rows.work_row(rows.event_row(source_id="quiet"), "processed")
    event = rows.event_row()
    item = rows.work_row(event, "processed")
    rows.failure_row(item)
    copy_rows(event, EVENTS, DeliveryKey=hashed("e"), DeliveryId="CONCAT('d', n)", EnqueueOrdinal="n + 100")
    place = f"(n + 1) * {EVENTS // ITEMS} + 99"
    copy_rows(
        item, ITEMS, WorkId=hashed("w"), LaneOrdinal=place, LanePosition=place, EventId=f"EventId + (n + 1) * {EVENTS // ITEMS}"
    )
    copy_rows(WorkFailure.objects.get(), ITEMS, WorkItemId="WorkItemId + n + 1")
    if statistics == "new":
        refresh_statistics(Event._meta.db_table, WorkItem._meta.db_table, WorkFailure._meta.db_table)
    assert trace("contact:42", SHOWN).events[-1].ordinal == EVENTS + 99
    assert look("42") <= 5_000
    assert look("contact:42") <= 15_000  # of each of 100 generations at most 101 inputs, and what they are found by


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_a_delivery_with_very_many_events(statistics: str) -> None:
    receipt = factories.receipt(factories.install(), {}, delivery_id="req-1", state="routed")
    event = rows.event_row(rows.PAGES, receipt_id=receipt.id)
    item = rows.work_row(event, "processed")
    many = size(10_000, 10_000)
    copy_rows(
        event, many, DeliveryKey=hashed("e"), DeliveryId="CONCAT('d', n)", SourceId="CONCAT('s', n)", EnqueueOrdinal="n + 100"
    )
    copy_rows(
        item,
        many,
        WorkId=hashed("w"),
        EventId="EventId + n + 1",
        LanePosition="n + 100",
        LaneOrdinal="n + 100",
        LaneKey=hashed("l"),
    )
    copy_rows(
        event, EVENTS, DeliveryKey=hashed("o"), DeliveryId="CONCAT('o', n)", ReceiptId="n + 100000000", EnqueueOrdinal="n + 20000"
    )
    if statistics == "new":
        refresh_statistics(Event._meta.db_table, WorkItem._meta.db_table, Receipt._meta.db_table)
    assert look("req-1") <= 3_000
