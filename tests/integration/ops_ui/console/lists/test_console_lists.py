"""Lists by position: each row once whatever the times, filters by index or by window, bounded reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ops_ui.console.lanes import reads as lane_pages
from ops_ui.console.lists import keyset
from ops_ui.console.lists.keyset import Cursor, Order
from ops_ui.console.overview import reads as flow_reads
from ops_ui.monitoring import counts
from projection.database.clock import now
from projection.models import LaneHold, WorkItem
from projection.states import State
from tests.support import console_world, factories, rows

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def walk(order: Order, size: int = 25, backwards: bool = False) -> list[int]:
    """The ids of all pages, following the cursors."""
    found: list[int] = []
    cursor: Cursor | None = None
    while True:
        page = keyset.page(WorkItem.objects.all(), order, cursor, size)
        ids = [row.id for row in page.rows]
        found = [*ids, *found] if backwards else [*found, *ids]
        cursor = page.previous if backwards else page.next
        if cursor is None:
            return found
        cursor = Cursor.parse(str(cursor))


@pytest.fixture
def equal_times(database: None) -> list[int]:
    """250 ended items of one moment, in three states."""
    states = (State.PROCESSED, State.SKIPPED, State.DEAD)
    made = [rows.work_row(rows.event_row(source_id=str(n)), states[n % 3], terminal_at=NOON, created_date=NOON) for n in range(250)]
    return [item.id for item in made]


@pytest.mark.parametrize("order", [Order("id"), Order("id", False), Order("terminal_at"), Order("terminal_at", False)])
def test_rows_with_equal_times_are_on_exactly_one_page(equal_times: list[int], order: Order) -> None:
    found = walk(order)
    assert found == sorted(equal_times, reverse=order.descending)


def test_pages_backwards_are_the_pages_forwards(equal_times: list[int]) -> None:
    order = Order("terminal_at")
    last = keyset.page(WorkItem.objects.all(), order, Cursor("after", equal_times[3], NOON), 25)
    assert [row.id for row in last.rows] == equal_times[2::-1]
    assert last.next is None
    assert last.previous is not None
    found = [row.id for row in last.rows]
    cursor: Cursor | None = last.previous
    while cursor is not None:
        page = keyset.page(WorkItem.objects.all(), order, cursor, 25)
        found = [*[row.id for row in page.rows], *found]
        cursor = page.previous
    assert found == equal_times[::-1]


def test_a_list_page_leads_to_every_row_once_over_http(equal_times: list[int]) -> None:
    client = console_world.client("viewer")
    for query in ({}, {"state": "dead"}, {"state": "processed"}):
        seen = _crawl(client, "/admin/generations/", query)
        expected = WorkItem.objects.filter(**query).count()
        assert len(seen) == len(set(seen)) == expected


def _crawl(client: Client, path: str, query: dict[str, str]) -> list[int]:
    seen: list[int] = []
    at = ""
    while True:
        context: Any = client.get(path, {**query, "at": at}).context
        seen += [row.id for row in context["found"].rows]
        if context["found"].next is None:
            return seen
        at = str(context["found"].next)


def test_a_filter_without_an_index_reads_a_window_and_goes_on(equal_times: list[int]) -> None:
    wanted = WorkItem.objects.filter(state=State.DEAD)
    found: list[int] = []
    cursor: Cursor | None = None
    rounds = 0
    while True:
        page = keyset.windowed(wanted, cursor, size=10, window=40)
        found += [row.id for row in page.rows]
        rounds += 1
        if page.next is None:
            break
        cursor = Cursor.parse(str(page.next))
    assert found == sorted(wanted.values_list("id", flat=True), reverse=True)
    assert rounds > 6


def test_a_window_says_how_far_it_looked(equal_times: list[int]) -> None:
    page = keyset.windowed(WorkItem.objects.filter(state="nothing"), None, window=40)
    assert page.rows == []
    assert page.searched_to == max(equal_times) - 39
    assert keyset.windowed(WorkItem.objects.filter(state="nothing"), None, window=400).next is None


def test_lists_never_count_nor_skip_rows() -> None:
    world = console_world.build()
    client = console_world.client("viewer")
    for name in ("receipts", "events", "generations", "lanes", "dead-letters", "records"):
        with CaptureQueriesContext(connection) as queries:
            client.get(world.paths[name])
        texts = [query["sql"] for query in queries if "_System_Connector" in query["sql"]]
        assert texts
        assert not any("OFFSET" in text for text in texts), name
        # counted is a bounded part only: the first rows of a list, or the runs in flight under a concurrency limit
        bounded = ("LIMIT", "_System_ConnectorRunPlace")
        assert not [text for text in texts if "COUNT(*)" in text and not any(part in text for part in bounded)], name


def test_filters_find_what_they_name() -> None:
    facts = factories.route(factories.install(), "orders", mode="projection")
    item = rows.work_row(rows.event_row(facts, source_id="7", delivery_id="d-7"), State.DEAD, error_fingerprint="a" * 64)
    rows.work_row(rows.event_row(source_id="8", delivery_id="d-8"), State.DEAD)
    client = console_world.client("viewer")
    for path, query in (
        ("events", {"source": "7"}),
        ("events", {"delivery": "d-7"}),
        ("events", {"route": "orders"}),
        ("events", {"kind": "orders.changed"}),
        ("generations", {"source": "contact:7"}),
        ("generations", {"work": item.work_id}),
        ("generations", {"route": "orders", "state": "dead"}),
        ("dead-letters", {"fingerprint": "a" * 64}),
        ("dead-letters", {"route": "orders"}),
    ):
        context: Any = client.get(f"/admin/{path}/", query).context
        assert len(context["found"].rows) == 1, (path, query)


def test_each_lane_is_listed_once_with_its_head() -> None:
    first = rows.work_row(rows.event_row(source_id="1"), State.RETRY)
    rows.work_row(rows.event_row(source_id="1"), State.BLOCKED)
    rows.work_row(rows.event_row(rows.PAGES, source_id="2"), State.PENDING)
    rows.work_row(rows.event_row(rows.PAGES, source_id="2"), State.PENDING)
    rows.work_row(rows.event_row(source_id="3"), State.PROCESSED)
    lanes = lane_pages.page("", None).rows
    assert [(lane.name, lane.depth) for lane in lanes] == [("contact:1", 2), ("contact:2", 2)]
    assert lanes[0].head is not None
    assert lanes[0].head.id == first.id


def test_a_lane_of_a_target_is_called_by_it_in_the_list_and_on_its_page() -> None:
    event = rows.event_row(rows.PAGES, source_id="2", target_mutation_lane="invoice:9")
    item = rows.work_row(event, State.PENDING)
    (lane,) = lane_pages.page("", None).rows
    assert lane.name == "invoice:9"
    response = console_world.client("viewer").get(f"/admin/lanes/{item.lane_key}/")
    assert response.context["name"] == "invoice:9"


def test_pages_of_lanes_hold_each_lane_once() -> None:
    states = (State.PENDING, State.PROCESSING, State.RETRY)
    made = [rows.work_row(rows.event_row(source_id=str(n)), states[n % 3]) for n in range(31)]
    seen: list[int] = []
    cursor: Cursor | None = None
    while True:
        page = lane_pages.page("", cursor, size=4)
        seen += [row.head.id for row in page.rows]
        if page.next is None:
            break
        cursor = page.next
    assert seen == [item.id for item in made]
    back = lane_pages.page("", page.previous, size=4)
    assert [row.head.id for row in back.rows] == seen[-len(page.rows) - 4 : -len(page.rows)]


def test_a_held_lane_without_work_is_listed() -> None:
    LaneHold.objects.create(namespace="default", lane_key="a" * 64, lane="contact:9", reason="r", held_by="ada", held_at=now())
    (lane,) = lane_pages.page("held", None).rows
    assert (lane.name, lane.depth, lane.head) == ("contact:9", 0, None)


def test_counts_stop_at_their_cap() -> None:
    for number in range(5):
        rows.work_row(rows.event_row(source_id=str(number)), State.DEAD)
    assert str(counts.count(WorkItem.objects.filter(state=State.DEAD), 3)) == "3+"
    assert str(counts.count(WorkItem.objects.filter(state=State.DEAD), 5)) == "5"
    assert not counts.count(WorkItem.objects.filter(state=State.RETRY), 3)


def test_the_oldest_waiting_row_gives_the_age() -> None:
    rows.work_row(rows.event_row(source_id="1"), State.PENDING, created_date=NOON)
    rows.work_row(rows.event_row(source_id="2"), State.PENDING)
    waiting = {one.stage: one for one in counts.oldest_waiting()}
    assert waiting["pending"].age(NOON + timedelta(minutes=3)) == timedelta(minutes=3)
    assert waiting["route"].age(NOON) is None


def test_the_last_hour_is_counted_by_the_minute() -> None:
    moment = now()
    pack = factories.install()
    for ago in (0, 30, 30, 59, 61):
        factories.receipt(pack, "{}", received_at=moment - timedelta(minutes=ago, seconds=-1 if ago == 59 else 1))
    item = rows.work_row(rows.event_row(source_id="1"), State.PROCESSED, terminal_at=moment - timedelta(minutes=2, seconds=1))
    rows.failure_row(item, created_date=moment - timedelta(minutes=4, seconds=1))
    received, admitted, executed, failed = flow_reads.flow(flow_reads.HOUR, moment)
    assert _heights(received) == {59: 1, 29: 2, 1: 1}
    assert _heights(executed) == {57: 1}
    assert _heights(failed) == {55: 1}
    assert received.sentence == "Received: 4 in the last hour, at most 2 in one minute."
    assert admitted.sentence == "Admitted: none in the last hour."


def _heights(series: flow_reads.Series) -> dict[int, int]:
    return {place: bar.value for place, bar in enumerate(series.chart.bars) if bar.value}


def test_the_refresh_is_the_live_part_alone() -> None:
    client = console_world.client("viewer")
    whole = client.get("/admin/")
    part = client.get("/admin/", headers={"HX-Request": "true"})
    assert b"<html" in whole.content
    assert b"<html" not in part.content
    assert b"Last hour" in part.content
    assert "HX-Request" in part.headers["Vary"]
