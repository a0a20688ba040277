"""Each read of admission, lanes and ranges answers for what it is asked for and reads few rows more, beside many rows of others.

The conditions of a statement and its order are pinned one by one: where one is missing, the answer differs, or the server reads
the rows of everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import MySQLdb
import pytest
from django.db import connection, transaction

from connectors.models import Namespace, Pack
from projection.database.clock import now, to_db
from projection.facts import PER_EVENT
from projection.models import Event, WorkItem
from projection.states import State
from tests.support import factories
from tests.support.bulk_rows import copy_rows, hashed
from tests.support.rows import PAGES, event_row, replay_row, route_of, work_row
from tests.support.server_work import locked_ids, refresh_statistics, server_work

pytestmark = pytest.mark.usefixtures("database")

OTHERS = 300
FEW = 60
"""Rows that a read for one or two keys may touch: index steps, look-ups and its own sort. Far below OTHERS."""
ITEMS, EVENTS = "_System_ConnectorWorkItem", "_System_ConnectorEvent"


@pytest.fixture
def world(database: None) -> SimpleNamespace:
    """One projection with a dead generation, its replay, a claimed generation and a queued successor; a lane of per-event items; a
    second projection that is mixed; and rows of many others."""
    found = SimpleNamespace(moment=now())
    found.old = event_row()
    found.dead = work_row(event_row(), State.DEAD)
    found.between = event_row()
    found.claimed = work_row(event_row(), State.PROCESSING)
    found.replay = replay_row(found.dead, State.PROCESSED)
    found.successor = work_row(event_row(), State.BLOCKED)
    found.key = str(found.dead.projection_key)
    found.single = work_row(event_row(PAGES), State.PROCESSED)
    found.mixed = work_row(event_row(source_id="mixed"), State.PROCESSED)
    found.unnumbered = event_row(source_id="mixed", enqueue_ordinal=0)
    found.lonely = event_row(source_id="lonely")
    found.foreign = event_row(route_of(namespace="tenant"), enqueue_ordinal=found.between.enqueue_ordinal)
    one = work_row(event_row(source_id="other"), State.PROCESSED)
    event = Event.objects.get(id=one.event_id)
    copy_rows(event, OTHERS, DeliveryKey=hashed("d"), ProjectionKey=hashed("k"), EnqueueOrdinal="n + 1000")
    copy_rows(one, OTHERS, WorkId=hashed("w"), ProjectionKey=hashed("k"), LaneKey=hashed("l"), LaneOrdinal="n + 1000")
    live = {"State": "'pending'", "TerminalAt": "NULL", "ClaimedAt": "NULL", "ProjectionActiveKey": hashed("q")}
    copy_rows(one, OTHERS, WorkId=hashed("v"), ProjectionKey=hashed("q"), LaneKey=hashed("l"), **live)
    queued = {**live, "State": "'blocked'", "ProjectionActiveKey": "NULL"}
    copy_rows(one, OTHERS, WorkId=hashed("u"), ProjectionKey=hashed("q"), LaneKey=hashed("l"), **queued)
    refresh_statistics(ITEMS, EVENTS)
    return found


READS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "read_known_deliveries": (
        lambda w: [row.id for row in Event.objects.read_known_deliveries([w.old.delivery_key])],
        lambda w: [w.old.id],
    ),
    "read_known_events": (lambda w: [row.id for row in Event.objects.read_known_events([w.old.id])], lambda w: [w.old.id]),
    "read_event_ids": (
        lambda w: Event.objects.read_event_ids("default", w.dead.lane_ordinal, w.claimed.lane_ordinal),
        lambda w: {
            w.dead.lane_ordinal: w.dead.event_id,
            w.between.enqueue_ordinal: w.between.id,
            w.claimed.lane_ordinal: w.claimed.event_id,
        },
    ),
    "read_current_generations": (
        lambda w: WorkItem.objects.read_current_generations([w.key]),
        lambda w: [w.claimed.id, w.successor.id],
    ),
    "read_successors": (lambda w: WorkItem.objects.read_successors([w.key]), lambda w: [w.successor.id]),
    "read_newest_ordinary": (
        lambda w: WorkItem.objects.read_newest_ordinary([w.old.id]),
        lambda w: {w.old.id: w.successor.lane_ordinal},
    ),
    "read_any_generation": (lambda w: WorkItem.objects.read_any_generation([w.old.id, w.lonely.id]), lambda w: {w.old.id}),
    "read_per_event_work": (
        lambda w: WorkItem.objects.read_per_event_work([w.single.work_id, "evt:none"]),
        lambda w: {w.single.work_id},
    ),
    "read_stored_facts": (
        lambda w: [row["Id"] for row in Event.objects.read_stored_facts([w.between.id, w.old.id], payloads=True)],
        lambda w: [w.old.id, w.between.id],
    ),
    "read_unblocked_rows": (
        lambda w: [row.id for row in WorkItem.objects.read_unblocked_rows([w.claimed.lane_key])],
        lambda w: [w.claimed.id],
    ),
    "read_next_blocked": (
        lambda w: WorkItem.objects.read_next_blocked([w.claimed.id]),
        lambda w: {w.claimed.id: None},
    ),
    "read_lower_bounds": (
        lambda w: WorkItem.objects.read_lower_bounds([w.claimed.id]),
        lambda w: [(w.claimed.id, w.key, w.claimed.lane_ordinal, w.dead.lane_ordinal, 0)],
    ),
    "read_lower_bounds of what is after a replay": (
        lambda w: WorkItem.objects.read_lower_bounds([w.successor.id]),
        lambda w: [(w.successor.id, w.key, w.successor.lane_ordinal, w.claimed.lane_ordinal, 0)],
    ),
    "read_lower_bounds of a first and mixed one": (
        lambda w: WorkItem.objects.read_lower_bounds([w.mixed.id]),
        lambda w: [(w.mixed.id, w.mixed.projection_key, w.mixed.lane_ordinal, None, 1)],
    ),
    "read_inputs": (
        lambda w: [row.id for _, row in Event.objects.read_inputs([(w.key, w.dead.lane_ordinal, w.claimed.lane_ordinal)])],
        lambda w: [w.between.id, w.claimed.event_id],
    ),
    "read_inputs where a replay came between": (
        lambda w: [row.id for _, row in Event.objects.read_inputs([(w.key, w.claimed.lane_ordinal, w.successor.lane_ordinal)])],
        lambda w: [w.successor.event_id],
    ),
    "read_lineage": (
        lambda w: [row[:-1] for row in WorkItem.objects.read_lineage([w.replay.work_id])],
        lambda w: [(w.replay.work_id, w.replay.id, w.dead.work_id, w.key, w.replay.event_id, w.replay.lane_ordinal)],
    ),
    "read_events": (lambda w: [row.id for row in Event.objects.read_events([w.old.id])], lambda w: [w.old.id]),
    "read_mixed_keys": (
        lambda w: Event.objects.read_mixed_keys([w.key, w.mixed.projection_key]),
        lambda w: {w.mixed.projection_key},
    ),
    "read_selections": (
        lambda w: sorted(item for _, item, _ in WorkItem.objects.read_selections([w.key])),
        lambda w: [w.dead.id, w.claimed.id, w.successor.id],
    ),
    "read_event_places": (
        lambda w: sorted(place.event_id for _, place in Event.objects.read_event_places([w.key])),
        lambda w: [w.old.id, w.dead.event_id, w.between.id, w.claimed.event_id, w.successor.event_id],
    ),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_answers_for_what_it_is_asked_for_and_reads_few_rows_more(world: SimpleNamespace, name: str) -> None:
    read, expected = READS[name]
    read(world)  # a server that has just opened the tables reads its own dictionary, too
    with server_work() as work:
        answer = read(world)
    assert answer == expected(world)
    assert work.rows_read <= FEW, work.counters


def test_of_several_keys_every_successor_is_read_also_where_the_active_generation_is_blocked() -> None:
    rows = [work_row(event_row(source_id=str(number)), State.BLOCKED) for number in range(3)]
    queued = [work_row(event_row(source_id=str(number)), State.BLOCKED) for number in range(3)]
    assert {row.projection_active_key for row in queued} == {None}
    keys = [str(row.projection_key) for row in rows]
    assert sorted(WorkItem.objects.read_current_generations(keys)) == [row.id for row in (*rows, *queued)]
    assert WorkItem.objects.read_successors(keys) == [row.id for row in queued]


def test_of_an_ambiguous_key_one_successor_more_than_there_may_be_is_read() -> None:
    active = work_row(event_row(), State.PROCESSING)
    queued = [work_row(event_row(), State.BLOCKED) for _ in range(5)]
    assert WorkItem.objects.read_current_generations([str(active.projection_key)]) == [active.id, queued[0].id, queued[1].id]
    assert WorkItem.objects.read_successors([str(active.projection_key)]) == [queued[0].id, queued[1].id]


def test_generations_are_compared_by_ordinal_whatever_the_ids_of_their_events() -> None:
    events = [event_row(enqueue_ordinal=ordinal) for ordinal in (9, 3, 7, 5)]
    items = {event.enqueue_ordinal: work_row(event, State.DEAD) for event in events}
    assert WorkItem.objects.read_newest_ordinary([events[1].id]) == {events[1].id: 9}
    found = {own: lower for _, _, own, lower, _ in WorkItem.objects.read_lower_bounds([row.id for row in items.values()])}
    assert found == {3: None, 5: 3, 7: 5, 9: 7}


def test_a_settling_source_reads_its_own_deadline_alone() -> None:
    moment = now()
    event = event_row(next_attempt_at=moment + timedelta(seconds=5))
    hour = {"next_attempt_at": moment + timedelta(seconds=1)}
    event_row(next_attempt_at=moment + timedelta(seconds=9))
    event_row(next_attempt_at=moment)
    event_row(pack_incarnation="incarnation-2", **hour)
    event_row(route_of(id=7, version=2), **hour)
    event_row(source_id="8", **hour)
    found = Event.objects.read_settle_deadlines([event.projection_key], to_db(moment))
    assert found == {event.projection_key: to_db(event.next_attempt_at)}


def test_inputs_come_by_ordinal_and_those_of_one_ordinal_by_id() -> None:
    later, first = event_row(enqueue_ordinal=9), event_row(enqueue_ordinal=8)
    twin = event_row(enqueue_ordinal=9)
    key = str(first.projection_key)
    assert [row.id for _, row in Event.objects.read_inputs([(key, 7, 9)])] == [first.id, later.id, twin.id]
    assert [row.id for _, row in Event.objects.read_inputs([(key, 8, 9)])] == [later.id, twin.id]
    assert [row.id for _, row in Event.objects.read_inputs([(key, 7, 8)])] == [first.id]


def test_work_items_are_locked_by_ascending_id_and_no_others(world: SimpleNamespace) -> None:
    chosen = [world.successor.id, world.dead.id]
    with transaction.atomic():
        rows = WorkItem.objects.lock_work_items(chosen)
        assert locked_ids(ITEMS, [world.dead.id, world.claimed.id, world.successor.id, world.single.id]) == sorted(chosen)
    assert [row.id for row in rows] == sorted(chosen)


def test_packs_are_locked_by_ascending_id_and_no_others() -> None:
    packs = [factories.install(f"pack-{number}").id for number in range(3)]
    with transaction.atomic():
        rows = WorkItem.objects.lock_packs([packs[2], packs[0]])
        assert locked_ids("_System_ConnectorPack", packs) == [packs[0], packs[2]]
    assert [row[0] for row in rows] == [packs[0], packs[2]]
    assert Pack.objects.count() == 3


def test_a_namespace_is_locked_and_numbered_alone() -> None:
    Namespace.objects.bulk_create([Namespace(name="a", next_enqueue_ordinal=5), Namespace(name="b", next_enqueue_ordinal=7)])
    with transaction.atomic():
        assert WorkItem.objects.lock_namespace("b") == 7
        assert waits_for_namespace("b")
        assert not waits_for_namespace("a")
        WorkItem.objects.set_next_ordinal("b", 8)
    assert dict(Namespace.objects.values_list("name", "next_enqueue_ordinal")) == {"a": 5, "b": 8}
    assert WorkItem.objects.lock_namespace("none") is None


def waits_for_namespace(name: str) -> bool:
    """Whether another connection would have to wait for the namespace's row."""
    other = MySQLdb.connect(**connection.get_connection_params())
    try:
        cursor = other.cursor()
        cursor.execute("SELECT Name FROM `_System_ConnectorNamespace` WHERE Name = %s FOR UPDATE SKIP LOCKED", [name])
        return not cursor.fetchall()
    finally:
        other.close()


def test_only_an_unclaimed_generation_is_advanced_and_no_other_row(world: SimpleNamespace) -> None:
    before = list(WorkItem.objects.order_by("id").values())
    moment = to_db(now())
    assert WorkItem.objects.advance_generations([(world.claimed.id, 1, 1, moment, 0, moment)]) == 0
    assert list(WorkItem.objects.order_by("id").values()) == before
    assert WorkItem.objects.advance_generations([(world.successor.id, world.old.id, 77, moment, 3, moment)]) == 1
    changed = WorkItem.objects.get(id=world.successor.id)
    assert (changed.event_id, changed.lane_ordinal, changed.delivery_sequence) == (world.old.id, 77, 3)
    assert (to_db(changed.event_created_date), to_db(changed.run_after)) == (moment, moment)
    rest = [row for row in WorkItem.objects.order_by("id").values() if row["id"] != changed.id]
    assert rest == [row for row in before if row["id"] != changed.id]


def test_only_a_queued_successor_is_activated_and_only_a_live_blocked_row_unblocked(world: SimpleNamespace) -> None:
    blocked = work_row(event_row(route_of("single", mode=PER_EVENT)), State.BLOCKED)
    waiting = work_row(event_row(source_id="waiting"), State.BLOCKED)
    assert waiting.projection_active_key, "live, behind another item of its lane"
    everything = [world.dead.id, world.claimed.id, world.single.id, world.successor.id, blocked.id, waiting.id]
    assert WorkItem.objects.unblock_work_items(everything) == 2
    assert set(WorkItem.objects.filter(id__in=everything, state=State.PENDING)) == {blocked, waiting}
    WorkItem.objects.filter(id=waiting.id).update(state=State.BLOCKED)
    WorkItem.objects.filter(id=world.claimed.id).update(projection_active_key=None)
    assert WorkItem.objects.activate_generations(everything) == 1
    world.successor.refresh_from_db()
    assert (world.successor.state, world.successor.projection_active_key) == (State.PENDING, world.key)
    assert WorkItem.objects.get(id=waiting.id).state == State.BLOCKED
    assert WorkItem.objects.filter(state=State.BLOCKED).count() == OTHERS + 1, "rows that were not named stay"
