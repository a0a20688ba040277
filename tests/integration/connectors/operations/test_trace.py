"""Trace: from any id to everything that it leads to, exactly, and no further."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.models import Receipt
from connectors.operations import source_events
from connectors.operations.trace import Trace, trace
from projection.database.clock import now
from projection.models import Event, WorkItem
from tests.support import factories
from tests.support.rows import CONTACTS, LONG_AGO, PAGES, event_row, failure_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def receipt(delivery_id: str | None = None, **columns: object) -> Receipt:
    pack = factories.install()
    return factories.receipt(pack, {"v": 1}, delivery_id=delivery_id, **columns)


def shape(found: Trace) -> tuple[list[int], list[int], list[str]]:
    return [r.id for r in found.receipts], [e.id for e in found.events], [w.work_id for w in found.work_items]


def test_nothing_is_found_for_an_unknown_id() -> None:
    work_row(event_row())
    for text in ("unknown", "", "x" * 5000, "9" * 30, "\udc88", "ünknown"):
        assert not trace(text).found, text


def test_a_delivery_id_leads_to_its_event_generation_and_failures() -> None:
    source = receipt("req-1")
    other = event_row(receipt_id=source.id)
    event = event_row(receipt_id=source.id, delivery_id="evt-1")
    item = work_row(event, "retry", lane_position=other.enqueue_ordinal)
    failure = failure_row(item, "ValueError: no", delay_ms=5000)
    failure_row(work_row(event_row(PAGES, source_id="other")))
    found = trace("evt-1")
    assert shape(found) == ([source.id], [event.id], [item.work_id])
    assert [(f.id, f.work_id, f.error, f.delay_ms) for f in found.failures] == [(failure.id, item.work_id, "ValueError: no", 5000)]
    assert not found.truncated


def test_a_request_id_leads_to_all_items_of_the_request() -> None:
    source = receipt("req-1")
    events = [event_row(PAGES, source_id=str(n), receipt_id=source.id) for n in range(3)]
    items = [work_row(event) for event in events]
    unrouted = event_row(None, receipt_id=source.id)
    expected = ([source.id], [*(e.id for e in events), unrouted.id], [i.work_id for i in items])
    assert shape(trace("req-1")) == expected
    assert shape(trace(str(source.id), only="receipt")) == expected


def test_a_number_names_a_receipt_and_an_event() -> None:
    event = event_row(PAGES, id=7001, receipt_id=7001, source_id="other")
    work_row(event)
    source = receipt(id=7001)
    found = trace("7001")
    assert [(match.way, match.kind, match.rows) for match in found.matches] == [("receipt", "receipt", 1), ("event", "event", 1)]
    assert shape(found)[:2] == ([source.id], [event.id])
    assert shape(trace("7001", only="event"))[1] == [event.id]
    assert not trace("7001", only="source_id").found


def test_each_way_of_a_match_is_told() -> None:
    work_row(event_row())
    ways = [(match.way, match.kind, match.rows, match.more) for match in trace("contact:42").matches]
    assert ways == [("source", "event", 1, False), ("lane", "work_item", 1, False)]
    event_row()
    assert [(match.rows, match.more) for match in trace("42", limit=1, only="source_id").matches] == [(1, True)]


def test_each_event_says_what_took_it() -> None:
    first, second = event_row(), event_row()
    item = work_row(event_row(), "dead", lane_position=first.enqueue_ordinal)
    again = replay_row(item, "processed")
    page = work_row(event_row(PAGES))
    unrouted = event_row(None)
    took = {event.id: event.work_id for event in trace("42").events}
    assert took == {
        first.id: item.work_id,
        second.id: item.work_id,
        item.event_id: item.work_id,
        again.event_id: again.work_id,
        page.event_id: page.work_id,
        unrouted.id: None,
    }


def test_an_event_inside_a_range_leads_to_the_generation_that_takes_it() -> None:
    first, middle = event_row(), event_row(delivery_id="evt-2")
    one = work_row(event_row(), "processed", lane_position=first.enqueue_ordinal)
    two = work_row(event_row(), "processing")
    assert shape(trace("evt-2"))[1:] == ([middle.id], [one.work_id])
    assert two.work_id not in shape(trace("evt-2"))[2]


def test_an_event_from_before_ordinals_leads_to_its_generation() -> None:
    event = event_row(enqueue_ordinal=0, created_date=LONG_AGO, delivery_id="old")
    early = work_row(event_row(enqueue_ordinal=0, created_date=LONG_AGO + timedelta(days=1)), "processed")
    work_row(event_row(), "processed")
    assert shape(trace("old"))[1:] == ([event.id], [early.work_id])


def test_a_work_id_leads_to_its_inputs_alone() -> None:
    source = receipt()
    before = work_row(event_row(receipt_id=source.id), "processed")
    inputs = [event_row(receipt_id=source.id) for _ in range(3)]
    item = work_row(inputs[-1], "processing", lane_position=inputs[0].enqueue_ordinal)
    work_row(event_row(), "blocked")
    assert shape(trace(item.work_id)) == ([source.id], [event.id for event in inputs], [item.work_id])
    assert before.work_id not in shape(trace(item.work_id))[2]


def test_a_replayed_item_leads_to_its_whole_lineage_and_back() -> None:
    event = event_row(delivery_id="evt-1")
    dead = work_row(event, "dead")
    again = replay_row(dead, "dead")
    third = replay_row(again, "processed")
    lineage = [dead.work_id, again.work_id, third.work_id]
    assert shape(trace("evt-1"))[2] == lineage
    assert shape(trace(third.work_id))[2] == lineage
    assert shape(trace(dead.work_id))[1] == [event.id, again.event_id, third.event_id]


@pytest.mark.parametrize("text", ["42", "contact:42"])
def test_a_source_leads_to_all_its_events(text: str) -> None:
    events = [event_row(), event_row()]
    item = work_row(events[1])
    page = event_row(PAGES, source_type="page", source_id="42")
    work_row(page)
    wanted = [e.id for e in events] + ([page.id] if text == "42" else [])
    assert shape(trace(text))[1] == wanted
    assert item.work_id in shape(trace(text))[2]


def test_types_and_ids_may_contain_colons() -> None:
    event = event_row(PAGES, source_type="urn:x", source_id="a:b", source_lane="")
    event_row(PAGES, source_type="urn", source_id="x:a:c", source_lane="")
    assert shape(trace("urn:x:a:b"))[1] == [event.id]


def test_a_lane_leads_to_its_items() -> None:
    event = event_row(PAGES, source_lane="shipment/7")
    item = work_row(event)
    assert shape(trace("shipment/7"))[1:] == ([event.id], [item.work_id])


def test_equality_is_exact_whatever_the_collation() -> None:
    event_row(PAGES, source_id="abc ", delivery_id="d ", source_lane="l ")
    event_row(PAGES, source_id="ABC", delivery_id="D", source_lane="L")
    receipt("r ")
    for text in ("abc", "d", "l", "r"):
        assert not trace(text).found, text


def test_conflicts_and_counts_are_shown() -> None:
    first = receipt("req-1", state="routed", routed_at=now(), item_count=2, event_count=1, duplicate_count=1)
    Receipt.objects.filter(id=first.id).update(conflict_count=0, rejected_count=0, verdicts='[{"item":1,"code":"duplicate"}]')
    conflict = receipt("req-1", state="conflict", conflict_hash="c" * 64)
    event = event_row(PAGES, receipt_id=first.id, delivery_id="evt-1")
    work_row(event)
    for text in ("req-1", "evt-1"):
        found = trace(text)
        assert [(r.id, r.conflict) for r in found.receipts] == [(first.id, False), (conflict.id, True)], text
    assert (found.receipts[0].items, found.receipts[0].duplicates) == (2, 1)
    assert found.receipts[0].verdicts == [{"item": 1, "code": "duplicate"}]


def test_the_answer_is_bounded_and_says_so() -> None:
    for _ in range(7):
        work_row(event_row(PAGES), "processed")
    found = trace("contact:42", limit=5)
    assert (len(found.events), len(found.work_items), found.truncated) == (5, 5, True)
    assert found.events[-1].id == Event.objects.latest("id").id
    assert not trace("contact:42", limit=7).truncated


def test_a_source_is_told_from_others_of_its_id_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [event_row(PAGES, source_type="issue", source_id="1").id for _ in range(2)]
    for _ in range(20):
        event_row(PAGES, source_type="repository", source_id="1")
    monkeypatch.setattr(source_events, "_FIRST_LOOK", 4)
    monkeypatch.setattr(source_events, "_LATER_LOOK", 8)
    assert (shape(trace("issue:1"))[1], trace("issue:1").truncated) == (wanted, False)
    monkeypatch.setattr(source_events, "LOOKED_AT", 12)
    assert (trace("issue:1").found, trace("issue:1").truncated) == (False, True)
    assert (len(trace("repository:1", limit=15).events), trace("repository:1", limit=5).truncated) == (12, True)


def test_many_failures_are_bounded_too() -> None:
    item = work_row(event_row(delivery_id="d"), "retry")
    for attempt in range(6):
        failure_row(item, attempt=attempt)
    found = trace("d", limit=5)
    assert ([f.attempt for f in found.failures], found.truncated) == ([1, 2, 3, 4, 5], True)


def test_the_cost_does_not_grow_with_the_rows() -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert trace("contact:42").found
        return len(queries)

    work_row(event_row(CONTACTS), "processed")
    few = cost()
    for _ in range(40):
        work_row(event_row(CONTACTS), "processed")
    assert WorkItem.objects.count() == 41
    assert cost() == few
