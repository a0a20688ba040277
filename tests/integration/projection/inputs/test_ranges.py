"""Ranges row by row: which events a generation takes, in which order, and when it is handed nothing at all
(docs/protocol.md#ranges).
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from projection.database.clock import now
from projection.execution.worker import drain_claims
from projection.facts import Input, RouteFacts, Source
from projection.inputs import ranges
from projection.inputs.ranges import BrokenRange, read_inputs, read_ranges, read_roots
from projection.leases import Claimed
from projection.models import Event, WorkFailure, WorkItem
from projection.states import State
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.rows import PAGES, event_row, replay_row, work_row
from tests.support.server_work import texts_recorded

pytestmark = pytest.mark.usefixtures("database")


def claimed(item: WorkItem) -> Claimed:
    (row,) = WorkItem.objects.lock_work_items([item.id])
    (selected,) = Event.objects.read_events([row.event_id])
    route = RouteFacts.from_snapshot(Event.objects.get(id=row.event_id).route_snapshot or "")
    return Claimed(row, selected, route)


def ids(*items: WorkItem) -> dict[int, list[int]]:
    found = read_ranges([item.id for item in items])
    return {number: [row.id for row in rows] for number, rows in found.items()}


def inputs(*items: WorkItem) -> dict[int, list[tuple[int, int]]]:
    """Work item id → (event id, ordinal) of its inputs."""
    found = read_inputs([claimed(item) for item in items])
    return {number: [(one.event_id, one.ordinal) for one in several] for number, several in found.items()}


def mixed_history(hours: float, source_id: str = "mixed") -> tuple[Event, Event, WorkItem]:
    """(unnumbered event, selected event, generation); the unnumbered one is from so many hours after the other."""
    moment = now()
    selected = event_row(source_id=source_id, created_date=moment)
    old = event_row(source_id=source_id, enqueue_ordinal=0, created_date=moment + timedelta(hours=hours))
    return old, selected, work_row(selected)


def test_generations_of_any_outcome_share_the_events_without_gap_or_overlap() -> None:
    events = [event_row() for _ in range(6)]
    event_row(None)
    event_row(source_id="other")
    first = work_row(events[1], State.DEAD)
    replay = replay_row(first, State.PROCESSED)
    second = work_row(events[2], State.CANCELLED)
    third = work_row(events[4], State.PROCESSING)
    assert ids(first, second, third) == {
        first.id: [events[0].id, events[1].id],
        second.id: [events[2].id],
        third.id: [events[3].id, events[4].id],
    }
    assert replay.lane_ordinal > third.lane_ordinal


def test_ranges_of_several_statements_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = [work_row(event_row(source_id=str(number))) for number in range(2)]
    old, selected, mixed = mixed_history(hours=-1)
    last = work_row(event_row(source_id="last"))
    expected = {item.id: [item.event_id] for item in (*numbered, last)} | {mixed.id: [old.id, selected.id]}
    assert ids(*numbered, mixed, last) == expected
    monkeypatch.setattr(ranges, "RANGES_A_STATEMENT", 1)
    assert ids(last, mixed, *numbered) == expected


def test_a_chunk_costs_two_statements_and_four_where_all_its_projections_are_mixed() -> None:
    numbered = [work_row(event_row(source_id=str(number))) for number in range(3)]
    mixed = [mixed_history(-1, source_id=f"mixed-{number}")[2] for number in range(3)]
    for items, statements in ((numbered, 2), (mixed, 4), ([*numbered, *mixed], 5)):
        with texts_recorded() as texts:
            assert len(ids(*items)) == len(items)
        assert len(texts) == statements


def test_what_is_after_every_generation_of_a_mixed_projection_is_nobody_s_input() -> None:
    old, selected, item = mixed_history(hours=1)
    assert ids(item) == {item.id: [selected.id]}
    Event.objects.filter(id=selected.id).delete()
    assert ids(item) == {item.id: []}
    assert Event.objects.filter(id=old.id).exists()


@pytest.mark.parametrize("hours", [-1.0, None], ids=["mixed", "numbered"])
def test_a_range_without_its_selected_event_is_broken(hours: float | None) -> None:
    item = work_row(event_row()) if hours is None else mixed_history(hours)[2]
    one = claimed(item)
    Event.objects.filter(id=item.event_id).update(projection_key="csp:" + "0" * 64)
    with pytest.raises(BrokenRange, match=f"does not contain its selected event {item.event_id}"):
        read_inputs([one])


def test_a_generation_with_a_broken_range_is_dead_with_the_reason_and_its_sibling_runs() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7), change(8))
    with recording() as seen:
        Event.objects.filter(source_id="7").update(projection_key="csp:" + "0" * 64)
        WorkItem.objects.update(max_attempts=1)
        assert drain_claims() == 2
    assert seen.sources == ["8"]
    assert "does not contain its selected event" in WorkFailure.objects.get().error


def test_a_replay_takes_its_root_s_inputs_with_its_own_event_at_the_ordinal_of_the_fact() -> None:
    other = work_row(event_row(source_id="other"))
    superseded, selected, after = event_row(), event_row(), event_row()
    root = work_row(selected, State.DEAD)
    newer = work_row(after, State.PROCESSED)
    replay = replay_row(root, State.DEAD)
    again = replay_row(replay)
    expected = [(superseded.id, superseded.enqueue_ordinal)]
    assert inputs(other, replay, again, newer) == {
        other.id: [(other.event_id, other.lane_ordinal)],
        replay.id: [*expected, (replay.event_id, selected.enqueue_ordinal)],
        again.id: [*expected, (again.event_id, selected.enqueue_ordinal)],
        newer.id: [(after.id, after.enqueue_ordinal)],
    }


def test_a_per_event_item_and_its_replay_take_one_event() -> None:
    item = work_row(event_row(PAGES), State.DEAD)
    replay = replay_row(item)
    assert inputs(item, replay) == {
        item.id: [(item.event_id, item.lane_ordinal)],
        replay.id: [(replay.event_id, item.lane_ordinal)],
    }


def test_per_event_items_read_no_ranges() -> None:
    one = claimed(work_row(event_row(PAGES)))
    with texts_recorded() as texts:
        read_inputs([one])
    assert texts == []


def test_an_input_says_what_was_received() -> None:
    provider_time = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=now().tzinfo)
    superseded = event_row(source_type="company", provider_timestamp=provider_time, payload='{"v":1.0}', delivery_sequence=3)
    selected = event_row(source_type="company")
    item = work_row(selected, State.DEAD)
    first, second = read_inputs([claimed(item)])[item.id]
    stored = Event.objects.get(id=superseded.id)
    assert first == Input(
        event_id=superseded.id, ordinal=superseded.enqueue_ordinal, kind="contact.changed", source=Source("company", "42"),
        delivery_id=superseded.delivery_id, provider_time=provider_time, payload='{"v":1.0}',
        payload_sha256=superseded.payload_sha256, created=stored.created_date, replay_of_event_id=None,
        receipt_id=stored.receipt_id, item=3,
    )  # fmt: skip
    assert second.event_id == selected.id
    replay = replay_row(item)
    assert read_inputs([claimed(replay)])[replay.id][1].replay_of_event_id == selected.id


def test_lineages_of_one_batch_are_climbed_together_one_statement_a_step() -> None:
    first = work_row(event_row(), State.DEAD)
    chain = [first]
    for _ in range(3):
        chain.append(replay_row(chain[-1], State.DEAD))
    second = work_row(event_row(PAGES), State.DEAD)
    short = replay_row(second, State.DEAD)
    with texts_recorded() as texts:
        roots = read_roots([chain[3].work_id, chain[1].work_id, short.work_id, second.work_id])
    assert len(texts) == 2, "what was asked for is not read again as an ancestor"
    assert {work_id: root.id for work_id, root in roots.items()} == {
        chain[3].work_id: first.id,
        chain[1].work_id: first.id,
        short.work_id: second.id,
        second.work_id: second.id,
    }
    root = roots[chain[3].work_id]
    assert (root.event_id, root.ordinal, root.projection_key) == (first.event_id, first.lane_ordinal, first.projection_key)


def test_a_root_that_was_asked_for_is_not_read_again_as_an_ancestor() -> None:
    root = work_row(event_row(), State.DEAD)
    replay = replay_row(root, State.DEAD)
    again = replay_row(replay, State.DEAD)
    with texts_recorded() as texts:
        assert {one.id for one in read_roots([again.work_id, root.work_id]).values()} == {root.id}
    assert len(texts) == 2


def test_a_lineage_of_which_one_ancestor_is_gone_is_broken_whatever_else_is_asked() -> None:
    root = work_row(event_row(), State.DEAD)
    replay = replay_row(root, State.DEAD)
    whole = work_row(event_row(PAGES), State.DEAD)
    WorkItem.objects.filter(id=root.id).delete()
    with pytest.raises(BrokenRange, match=f"no longer stored: {root.work_id}"):
        read_roots([whole.work_id, replay.work_id])


@pytest.mark.parametrize("state", ["pending", "processing", "retry", "processed", "dead", "cancelled"])
def test_a_range_begins_behind_the_generation_before_it_whatever_became_of_that(state: str) -> None:
    """Bounded by ended generations only, a successor would take what the running one is given too."""
    early = [event_row() for _ in range(3)]
    before = work_row(early[-1], state)
    late = [event_row() for _ in range(2)]
    after = work_row(late[-1], State.BLOCKED if before.projection_active_key else State.PENDING)
    assert ids(before, after) == {before.id: [event.id for event in early], after.id: [event.id for event in late]}
