"""Readiness of lanes, row by row: who blocks, and who is unblocked when a row has ended (docs/protocol.md#blocked)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from projection.completion import lanes
from projection.database import clock
from projection.database.transactions import run_unit
from projection.facts import PER_EVENT
from projection.models import WorkItem
from projection.rows import WorkRow
from projection.states import State
from tests.support.rows import CONTACTS, event_row, route_of, work_row
from tests.support.server_work import texts_recorded

pytestmark = pytest.mark.usefixtures("database")

SINGLE = route_of("single", mode=PER_EVENT)


def item(lane: str, state: str = State.PENDING, **columns: Any) -> WorkItem:
    return work_row(event_row(SINGLE, source_id=lane), state, **columns)


def blockers(*rows: WorkItem) -> dict[str, int]:
    found = lanes.read_blockers([str(row.lane_key) for row in rows], clock.now())
    return {lane: row.id for lane, row in found.items()}


def unblock(*ended: WorkItem, blocking: dict[str, tuple[int, int]] | None = None) -> int:
    return run_unit("test", lambda: lanes.unblock_next([row.id for row in ended], blocking))


def pending() -> set[int]:
    return set(WorkItem.objects.filter(state=State.PENDING).values_list("id", flat=True))


@pytest.fixture
def before_the_lock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Runs a function once, between the read of the candidates and their lock: what another connection committed meanwhile."""
    manager = type(WorkItem.objects)
    lock = manager.lock_work_items

    def arrange(act: Callable[[], object]) -> None:
        def first_act(self: Any, ids: Iterable[int]) -> list[WorkRow]:
            monkeypatch.setattr(manager, "lock_work_items", lock)
            act()
            return lock(self, ids)

        monkeypatch.setattr(manager, "lock_work_items", first_act)

    return arrange


@pytest.fixture(params=["ascending", "descending"])
def read_order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may return unordered rows in any order."""
    manager = type(WorkItem.objects)
    read = manager.read_unblocked_rows
    monkeypatch.setattr(
        manager,
        "read_unblocked_rows",
        lambda self, keys: sorted(read(self, keys), key=lambda row: row.id, reverse=request.param == "descending"),
    )


@pytest.mark.usefixtures("read_order")
def test_the_first_blocking_row_of_each_lane_is_by_position_then_id() -> None:
    late, early, settling = item("1", lane_position=9), item("1", lane_position=8), item("1", lane_position=1)
    WorkItem.objects.filter(id=settling.id).update(run_after=clock.now() + timedelta(hours=1))
    first, second = item("2", State.RETRY, lane_position=20), item("2", lane_position=20)
    queued = item("3", State.BLOCKED)
    ended = item("4", State.PROCESSED)
    rows = (late, early, settling, first, second, queued, ended)
    expected = {early.lane_key: early.id, first.lane_key: first.id}
    assert blockers(*rows) == expected
    assert blockers(*reversed(rows)) == expected
    WorkItem.objects.filter(id=early.id).update(lane_position=10)
    assert blockers(*rows) == {**expected, late.lane_key: late.id}


def test_lanes_of_several_statements_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [item(str(number)) for number in range(3)]
    keys, moment = [str(row.lane_key) for row in (*rows, *rows)], clock.now()
    for at_once, statements in ((256, 1), (1, 3)):
        monkeypatch.setattr(lanes, "LANES_A_STATEMENT", at_once)
        with texts_recorded() as texts:
            found = lanes.read_blockers(keys, moment)
        assert {lane: row.id for lane, row in found.items()} == {row.lane_key: row.id for row in rows}
        assert len(texts) == statements, "a lane that is asked for twice is read once"


def test_the_first_blocked_row_of_the_lane_is_unblocked_and_no_other() -> None:
    ended, other = item("1", State.PROCESSED), item("2", State.PROCESSED)
    last = item("1", State.BLOCKED, lane_position=60)
    twin = item("1", State.BLOCKED, lane_position=50)
    later_twin = item("1", State.BLOCKED, lane_position=50)
    foreign = item("3", State.BLOCKED)
    assert unblock(ended, other) == 1
    assert pending() == {twin.id}
    assert unblock(ended) == 1
    assert pending() == {twin.id, later_twin.id}
    assert set(WorkItem.objects.filter(state=State.BLOCKED)) == {last, foreign}


def test_a_lane_without_blocked_rows_costs_one_statement() -> None:
    ended = item("1", State.PROCESSED)

    def look() -> list[str]:
        with texts_recorded() as texts:
            assert lanes.unblock_next([ended.id]) == 0
        return texts

    assert len(run_unit("test", look)) == 1


def test_two_rows_of_one_lane_that_end_together_unblock_one() -> None:
    ended = [item("1", State.PROCESSED), item("1", State.PROCESSED)]
    item("1", State.BLOCKED), item("1", State.BLOCKED)
    assert unblock(*ended) == 1
    assert len(pending()) == 1


def test_a_queued_successor_is_not_unblocked_but_the_live_row_behind_it_is() -> None:
    ended = work_row(event_row(CONTACTS), State.PROCESSED)
    successor = work_row(event_row(CONTACTS), State.BLOCKED, projection_active_key=None)
    single = work_row(event_row(route_of("same", mode=PER_EVENT)), State.BLOCKED)
    assert single.lane_key == ended.lane_key
    assert unblock(ended) == 1
    assert pending() == {single.id}
    WorkItem.objects.filter(id=successor.id).update(projection_active_key=successor.projection_key)
    assert unblock(ended) == 1, "it is live now"
    assert pending() == {single.id, successor.id}


@pytest.mark.parametrize(
    ("ahead", "unblocked"),
    [
        pytest.param((49, 1), 0, id="a smaller position"),
        pytest.param((50, -1), 0, id="the same position and a smaller id"),
        pytest.param((50, 1), 1, id="the same position and a larger id"),
        pytest.param((51, -1), 1, id="a larger position"),
    ],
)
def test_what_is_behind_a_row_that_blocks_from_now_on_stays_blocked(ahead: tuple[int, int], unblocked: int) -> None:
    """`ahead`: position of the row that blocks, and how far its id is from the candidate's."""
    ended, other = item("1", State.PROCESSED), item("2", State.PROCESSED)
    candidate = item("1", State.BLOCKED, lane_position=50)
    free = item("2", State.BLOCKED, lane_position=50)
    assert unblock(ended, other, blocking={str(ended.lane_key): (ahead[0], candidate.id + ahead[1])}) == unblocked + 1
    assert free.id in pending()
    assert len(pending()) == unblocked + 1


@pytest.mark.parametrize("fate", ["ended", "pruned"])
def test_a_candidate_that_ended_while_its_lock_was_awaited_is_replaced_by_the_next(
    fate: str, before_the_lock: Callable[[Callable[[], object]], None]
) -> None:
    ended, other = item("1", State.PROCESSED), item("2", State.PROCESSED)
    candidate, following, free = item("1", State.BLOCKED), item("1", State.BLOCKED), item("2", State.BLOCKED)
    row = WorkItem.objects.filter(id=candidate.id)
    before_the_lock(lambda: row.delete() if fate == "pruned" else row.update(state=State.CANCELLED, terminal_at=clock.now()))
    assert unblock(ended, other) == 2, "of both rounds together"
    assert pending() == {following.id, free.id}


@pytest.mark.parametrize("state", [State.PENDING, State.PROCESSING, State.RETRY])
def test_a_candidate_that_somebody_else_unblocked_meanwhile_is_enough(
    state: State, before_the_lock: Callable[[Callable[[], object]], None]
) -> None:
    ended = item("1", State.PROCESSED)
    candidate, following = item("1", State.BLOCKED), item("1", State.BLOCKED)
    before_the_lock(lambda: WorkItem.objects.filter(id=candidate.id).update(state=state))
    assert unblock(ended) == 0
    assert WorkItem.objects.get(id=candidate.id).state == state
    assert WorkItem.objects.get(id=following.id).state == State.BLOCKED


def test_a_hold_and_its_release_are_logged_and_the_workers_are_told_of_the_release_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[str, dict[str, object]]] = []
    told: list[str] = []
    monkeypatch.setattr(lanes, "log_event", lambda verb, **fields: logged.append((verb, fields)))
    monkeypatch.setattr(lanes, "notify", told.append)
    held, other = (str(item(lane).lane_key) for lane in ("1", "2"))
    assert lanes.hold("default", held, "contact:1", actor="ann", reason="look")
    assert not lanes.hold("default", held, "contact:1", actor="bob", reason="too")
    assert not lanes.release(other, actor="bob")
    assert logged == [("hold", {"namespace": "default", "lane": "contact:1", "actor": "ann", "reason": "look"})]
    assert told == []
    assert lanes.release(held, actor="bob")
    assert logged[1:] == [("release", {"lane": held, "actor": "bob"})]
    assert told == ["claim"]
    assert not lanes.release(held, actor="bob")
    assert (len(logged), len(told)) == (2, 1)
