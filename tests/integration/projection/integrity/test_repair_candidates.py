"""What repair looks at: exactly the events without ordinary work, the successors without predecessor and the lanes that nobody moves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from projection.database.catalogue import fetch
from projection.database.clock import now
from projection.facts import PER_EVENT
from projection.integrity.invariants import audit
from projection.models import Event, WorkItem
from projection.states import State
from tests.support.rows import PAGES, event_row, replay_row, route_of, work_row

pytestmark = pytest.mark.usefixtures("database")

SINGLE = route_of("single", mode=PER_EVENT)


def without_work(after: int = 0, through: int = 10**12) -> list[int]:
    return [row[0] for row in fetch("read_events_without_work", after=after, through=through)]


def test_a_projected_event_is_a_candidate_unless_an_ordinary_generation_of_its_own_projection_is_at_or_after_it() -> None:
    represented, selected = event_row(), event_row()
    dead = work_row(selected, State.DEAD)
    after, other = event_row(), event_row(source_id="8")
    replay = replay_row(dead)
    work_row(event_row(source_id="9"), State.PROCESSED)
    assert without_work() == [after.id, other.id]
    assert represented.id < selected.id < after.id < replay.event_id
    WorkItem.objects.filter(id=dead.id).update(lane_ordinal=after.enqueue_ordinal)
    assert without_work() == [other.id]
    assert without_work(after=other.id) == []
    assert without_work(through=other.id - 1) == []


def test_a_per_event_event_is_a_candidate_without_an_ordinary_item_of_its_own() -> None:
    done, lost = event_row(PAGES), event_row(PAGES)
    item = work_row(done, State.DEAD)
    event_row(None)
    assert without_work() == [lost.id]
    WorkItem.objects.filter(id=item.id).update(event_id=lost.id, replay_of_work_id="evt:gone")
    assert without_work() == [done.id, lost.id], "a replay represents nothing but itself"


def test_rows_from_before_ordinals_are_all_candidates() -> None:
    old = event_row(enqueue_ordinal=0)
    work_row(event_row(), State.PROCESSED)
    assert without_work() == [old.id]


def test_a_successor_is_a_lost_hand_off_only_without_an_active_generation() -> None:
    active = work_row(event_row(), State.PROCESSING)
    successor = work_row(event_row(), State.BLOCKED)
    work_row(event_row(SINGLE), State.BLOCKED)
    work_row(event_row(source_id="8"), State.BLOCKED)
    assert list(fetch("read_lost_handoffs", after=0, limit=10)) == []
    WorkItem.objects.filter(id=active.id).update(
        state=State.PROCESSED, terminal_at=now(), projection_active_key=None, lane_holder_key=None,
        lease_token=None, lease_owner=None, lease_expires_at=None,
    )  # fmt: skip
    other = work_row(event_row(source_id="9"), State.BLOCKED, projection_active_key=None)
    assert [row[0] for row in fetch("read_lost_handoffs", after=0, limit=10)] == [successor.id, other.id]
    assert [row[0] for row in fetch("read_lost_handoffs", after=0, limit=1)] == [successor.id]


@pytest.mark.parametrize(
    ("state", "hours", "stranded"),
    [
        (State.PROCESSING, 0, False),
        (State.RETRY, 1, False),
        (State.PENDING, -1, False),
        (State.PENDING, 1, True),
        (State.PROCESSED, -1, True),
    ],
)
def test_a_lane_is_stranded_unless_something_runs_waits_to_retry_or_is_due(state: State, hours: int, stranded: bool) -> None:
    ahead = work_row(event_row(SINGLE), state)
    WorkItem.objects.filter(id=ahead.id).update(run_after=now() + timedelta(hours=hours))
    blocked = work_row(event_row(SINGLE), State.BLOCKED)
    work_row(event_row(SINGLE), State.BLOCKED)
    work_row(event_row(), State.BLOCKED, projection_active_key=None)
    work_row(event_row(SINGLE, source_id="running"), State.PROCESSING)
    assert list(fetch("read_stranded_lanes", after="", limit=10)) == ([(blocked.lane_key, blocked.id)] if stranded else [])
    assert Event.objects.count() == 5


@pytest.mark.parametrize("state", [State.PENDING, State.PROCESSING])
def test_what_is_due_behind_a_blocked_row_keeps_its_lane_only_while_it_holds_it(state: State) -> None:
    """As `audit` says: the end of a pending row unblocks the next in its turn, and that is not the one it has overtaken."""
    blocked = work_row(event_row(SINGLE), State.BLOCKED)
    work_row(event_row(SINGLE), state)
    stranded = state is State.PENDING
    assert [row[1] for row in fetch("read_stranded_lanes", after="", limit=10)] == ([blocked.id] if stranded else [])
    assert bool(audit().violations) == stranded


def test_of_many_stranded_lanes_at_most_the_limit_is_read_behind_a_key() -> None:
    rows = [work_row(event_row(SINGLE, source_id=str(number)), State.BLOCKED) for number in range(3)]
    found = sorted((row.lane_key, row.id) for row in rows)
    assert list(fetch("read_stranded_lanes", after="", limit=10)) == found
    assert list(fetch("read_stranded_lanes", after="", limit=2)) == found[:2]
    assert list(fetch("read_stranded_lanes", after=found[0][0], limit=10)) == found[1:]
