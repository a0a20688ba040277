"""Sources cost the same whatever the history holds: the list, one source of very many events, and an id that others share."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ops_ui.console.sources import reads as source_reads
from ops_ui.console.sources.reads import Source
from projection.models import Event, WorkItem
from tests.support import console_world, rows
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.scale import size
from tests.support.server_work import full_scans, refresh_statistics, server_work, texts_recorded

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.scale]

EVENTS = size(30_000, 1_000_000)
ITEMS = size(6_000, 200_000)


def history(sources: int) -> None:
    """Very many events, in turn of so many sources, whose work has ended; one quiet source at the very beginning."""
    rows.work_row(rows.event_row(source_id="quiet"), "processed")
    event = rows.event_row()
    item = rows.work_row(event, "processed")
    which = f"MOD(n, {sources})"
    copy_rows(
        event,
        EVENTS,
        DeliveryKey=hashed("e"),
        EnqueueOrdinal="n + 100",
        SourceId=which,
        SourceKey=f"SHA2(CONCAT('0:7:contact', LENGTH({which}), ':', {which}), 256)",
        SourceLane=f"CONCAT('contact:', {which})",
        ProjectionKey=f"CONCAT('csp:', SHA2({which}, 256))",
    )
    place = f"(n + 1) * {EVENTS // ITEMS} + 99"
    key = f"CONCAT('csp:', SHA2(MOD({place} - 100, {sources}), 256))"
    copy_rows(
        item,
        ITEMS,
        WorkId=hashed("w"),
        LaneOrdinal=place,
        LanePosition=place,
        EventId=f"EventId + (n + 1) * {EVENTS // ITEMS}",
        ProjectionKey=key,
        LaneKey=f"SHA2(CONCAT('lane', MOD({place} - 100, {sources})), 256)",
    )


def look(path: str) -> tuple[int, Any]:
    """Rows that the server reads for the page, and its context; no large table is read from end to end."""
    client = Client()
    client.force_login(User.objects.filter(username="viewer").first() or console_world.user("viewer"))
    client.get(path)
    with server_work() as work:
        response: Any = client.get(path)
    assert response.status_code == 200
    with texts_recorded() as texts:
        client.get(path)
    large = (Event._meta.db_table, WorkItem._meta.db_table)
    assert full_scans(text for text in texts if any(table in text for table in large)) == []
    return work.rows_read, response.context


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_the_list_of_many_sources(statistics: str) -> None:
    history(sources=1_000)
    if statistics == "new":
        refresh_statistics(Event._meta.db_table, WorkItem._meta.db_table)
    read, context = look("/admin/sources/")
    newest = [row.source_id for row in context["found"].rows]
    assert (len(newest), len(set(newest))) == (50, 50)
    assert read <= 2_000


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_the_list_beside_one_source_that_sends_all(statistics: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history(sources=1)
    if statistics == "new":
        refresh_statistics(Event._meta.db_table, WorkItem._meta.db_table)
    read, context = look("/admin/sources/")
    assert [row.source_id for row in context["found"].rows] == ["0"]
    assert context["found"].searched_to is not None
    assert read <= 20_000 * 5


@pytest.mark.parametrize("statistics", ["old", "new"])
def test_one_source_of_very_many_events(statistics: str) -> None:
    history(sources=1)
    if statistics == "new":
        refresh_statistics(Event._meta.db_table, WorkItem._meta.db_table)
    read, context = look("/admin/sources/one/?namespace=default&type=contact&id=0")
    assert len(context["history"].events) == source_reads.EVENTS_SHOWN
    assert context["history"].events[-1].enqueue_ordinal == EVENTS + 99
    assert read <= 5_000
    read, context = look("/admin/sources/?source=0")
    assert [row.source_id for row in context["found"].rows] == ["0"]
    assert read <= 3 * source_reads.LOOKED_AT + 1_000


def test_a_history_is_read_by_a_fixed_number_of_statements() -> None:
    counted = []
    for more in (1, 40):
        for _ in range(more):
            item = rows.work_row(rows.event_row(), "processed")
            rows.failure_row(item)
        with texts_recorded() as texts:
            source_reads.history(Source("default", "contact", "42"))
        counted.append(len(texts))
    assert counted[0] == counted[1] <= 15
