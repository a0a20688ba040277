"""Lineages that a fault has broken: each reader ends, says what it found, and hands over nothing that it is not sure of."""

from __future__ import annotations

import pytest

from projection.execution.worker import drain_claims
from projection.inputs import lineage, ranges, replay_chains
from projection.inputs.lineage import InputSpan, event_ids_of, input_span, replay_lineage, root_of
from projection.inputs.ranges import BrokenRange, read_roots
from projection.inputs.replay_chains import EndlessChain, read_chains
from projection.models import Event, WorkFailure, WorkItem
from projection.replay.replay import replay
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rows import event_row, replay_row, work_row

pytestmark = pytest.mark.usefixtures("database")


def chain(length: int) -> list[WorkItem]:
    """A dead item and its replays, each of the one before, all dead."""
    items = [work_row(event_row(), "dead")]
    for _ in range(length - 1):
        items.append(replay_row(items[-1], "dead"))
    return items


def circle() -> list[WorkItem]:
    """Two items that replay each other, and one that replays them."""
    items = chain(3)
    WorkItem.objects.filter(id=items[0].id).update(replay_of_work_id="csp:" + "0" * 64)
    WorkItem.objects.filter(id=items[2].id).update(replay_of_work_id=None)
    WorkItem.objects.filter(id=items[0].id).update(replay_of_work_id=items[1].work_id)
    return [WorkItem.objects.get(id=item.id) for item in items]


def test_a_replay_without_its_origin_is_dead_with_the_reason_and_runs_nothing() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    with recording() as seen:
        WorkItem.objects.filter(source_lane="contact:7").update(replay_of_work_id="csp:gone")
        WorkItem.objects.update(max_attempts=1)
        assert drain_claims() == 2
    assert seen.sources == ["8"], "its sibling runs"
    assert "the replayed work is no longer stored: csp:gone" in WorkFailure.objects.get().error


def test_a_lineage_that_is_a_circle_has_no_root() -> None:
    first, second, _ = circle()
    with pytest.raises(BrokenRange, match="is a cycle"):
        read_roots([first.work_id])
    assert (root_of(first), root_of(second)) == (None, None)
    assert replay_lineage([first]) == {first.id, second.id}
    assert event_ids_of([first], 10) == {first.event_id}
    assert input_span(first) == InputSpan(1, first.lane_ordinal, first.lane_ordinal)


def test_a_lineage_that_is_longer_than_any_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "LONGEST_LINEAGE", 3)
    items = chain(5)
    assert read_roots([items[2].work_id])[items[2].work_id].id == items[0].id
    with pytest.raises(BrokenRange, match="is a cycle"):
        read_roots([items[4].work_id])


def test_what_people_are_shown_of_a_lineage_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "LONGEST_LINEAGE", 2)
    items = chain(6)
    assert replay_lineage([items[5]]) == {items[4].id, items[3].id}
    assert root_of(items[5]) is None
    assert root_of(items[1]) == items[0]


def test_a_chain_of_replays_that_does_not_end_is_refused_and_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_chains, "LONGEST_LINEAGE", 3)
    ingress = open_ingress()
    route = ingress.route()
    items = [work_row(event_row(route, pack_incarnation=ingress.pack.incarnation), "dead")]
    for _ in range(3):
        items.append(replay_row(items[-1], "dead"))
    assert len(read_chains([items[2].work_id])[items[2].work_id].ids) == 2
    before = WorkItem.objects.count(), Event.objects.count()
    with pytest.raises(EndlessChain, match=items[0].work_id):
        replay(items[0].work_id, actor="me", reason="fixed")
    assert (WorkItem.objects.count(), Event.objects.count()) == before


def test_of_several_ranges_the_newest_events_are_shown_first_and_no_more_than_asked_for() -> None:
    old = [event_row(source_id="1") for _ in range(5)]
    new = [event_row(source_id="2") for _ in range(5)]
    items = [work_row(old[-1], "processed"), work_row(new[-1], "processed")]
    found = event_ids_of(items, 4)
    assert len(found) == 4
    assert {old[-1].id, new[-1].id} <= found, "what they select is always shown"
    assert found - {old[-1].id} <= {event.id for event in new}


def test_a_generation_whose_events_are_gone_is_shown_with_the_one_that_it_selects() -> None:
    item = work_row(event_row(), "processed")
    Event.objects.all().delete()
    assert input_span(item) == InputSpan(1, item.lane_ordinal, item.lane_ordinal)
