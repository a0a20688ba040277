"""Replay: a dead item runs again as a distinct item with its lineage, once, and alone in its source's scope
(docs/protocol.md#replay).
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError

from connectors.configuration import routes
from connectors.models import Namespace
from projection.execution.worker import drain_claims
from projection.facts import RouteFacts
from projection.flows import DeadLetter, Skip
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.cancel import cancel
from projection.replay.decision import Deferred, Replayed
from projection.replay.discard import discard
from projection.replay.replay import replay, replay_many
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import Recorder, recording
from tests.support.rows import PAGES, event_row, replay_row, work_row
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def dead(seen: Recorder, ingress: Ingress, *, events: int = 3, contact: int = 7) -> WorkItem:
    """A generation of the contact that died with its inputs."""
    seen.raises_for[str(contact)] = DeadLetter("bad")
    ingress.admit(*changes(contact, events))
    drain_claims()
    del seen.raises_for[str(contact)]
    seen.runs.clear()
    return WorkItem.objects.filter(state="dead").latest("id")


def open_with_route(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(**options)
    return ingress


def again(item: WorkItem) -> WorkItem:
    """The replay that is made of the item."""
    found = replay(item.work_id, actor="me", reason="fixed")
    assert isinstance(found, Replayed), found
    return WorkItem.objects.get(work_id=found.replay_work_id)


def refused(item: WorkItem) -> Refused:
    found = replay(item.work_id, actor="me", reason="fixed")
    assert isinstance(found, Refused), found
    return found


def test_a_replay_is_a_distinct_generation_of_the_same_projection() -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        before = WorkItem.objects.filter(id=item.id).values().get()
        new = again(item)
        assert WorkItem.objects.filter(id=item.id).values().get() == before
    assert (new.replay_of_work_id, new.projection_key, new.projection_active_key) == (
        item.work_id, item.projection_key, item.projection_key,
    )  # fmt: skip
    assert new.work_id not in (item.work_id, item.projection_key)
    assert (new.state, new.attempts, new.execution_class, new.lane_key) == ("pending", 0, "projection", item.lane_key)
    event, origin = Event.objects.get(id=new.event_id), Event.objects.get(id=item.event_id)
    assert event.delivery_id.startswith("replay:")
    assert (event.replay_of_event_id, event.payload, event.route_snapshot) == (origin.id, origin.payload, origin.route_snapshot)
    assert event.enqueue_ordinal == 4 == new.lane_ordinal


def test_it_runs_with_the_inputs_of_the_dead_one_and_later_events_keep_theirs() -> None:
    with recording() as seen:
        ingress = open_with_route()
        again(dead(seen, ingress))
        drain_claims()
        ingress.admit(*changes(7, 2))
        drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1, 2, 3], [5, 6]]
    assert states(7) == ["dead", "processed", "processed"]


def test_events_that_arrive_while_a_replay_waits_are_not_swallowed_by_it() -> None:
    with recording() as seen:
        ingress = open_with_route()
        again(dead(seen, ingress))
        ingress.admit(*changes(7, 2))
        assert states(7) == ["dead", "pending", "blocked"]
        ingress.admit(change(7))
        drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1, 2, 3], [5, 6, 7]]


def test_a_task_is_repaired_behind_a_replay() -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        again(item)
        lost = change(7)
        ingress.admit(lost)
        WorkItem.objects.filter(state="blocked").delete()
        assert ingress.admit(lost).repaired == 1
        drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1, 2, 3], [5]]


def test_a_double_click_makes_one_replay_and_names_it() -> None:
    with recording() as seen:
        item = dead(seen, open_with_route())
        new = again(item)
        second = refused(item)
        assert (second.id, second.code) == (item.work_id, "already_replayed")
        assert new.work_id in second.reason
        assert WorkItem.objects.count() == 2
        drain_claims()
        assert (refused(item).code, "it succeeded" in refused(item).reason) == ("already_replayed", True)


def test_a_skipped_replay_is_an_end_too() -> None:
    with recording() as seen:
        item = dead(seen, open_with_route())
        again(item)
        seen.raises.append(Skip("gone"))
        drain_claims()
    assert "it was skipped" in refused(item).reason


@pytest.mark.parametrize("end", ["dead", "cancelled"])
def test_a_replay_that_died_is_replayed_with_the_inputs_of_the_root(end: str) -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        for _ in range(2):
            new = again(item)
            if end == "dead":
                seen.raises.append(DeadLetter("still bad"))
                drain_claims()
            else:
                cancel(new.work_id, actor="me", reason="wait")
        last = again(item)
        seen.runs.clear()
        drain_claims()
    lineage = [row.replay_of_work_id for row in generations(7)]
    assert lineage == [None, *[row.work_id for row in generations(7)[:-1]]]
    assert (last.replay_of_work_id, seen.runs) == (generations(7)[2].work_id, [(last.work_id, 1, [1, 2, 3])])


def test_a_dead_replay_may_be_named_itself() -> None:
    with recording() as seen:
        item = dead(seen, open_with_route())
        first = again(item)
        seen.raises.append(DeadLetter("still bad"))
        drain_claims()
        assert again(first).replay_of_work_id == first.work_id
        assert refused(item).code == "already_replayed"


@pytest.mark.parametrize("state", ["pending", "processing", "retry"])
def test_another_active_generation_of_the_source_is_named(state: str) -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        ingress.admit(change(7))
        if state != "pending":
            attempt = ByHand().claim_one()
            if state == "retry":
                report(attempt, State.RETRY, outcome="retry", error="no")
        active = WorkItem.objects.get(state=state)
        found = refused(item)
        assert (found.code, active.work_id in found.reason) == ("active_generation", True)
        assert WorkItem.objects.count() == 2
        if state == "processing":
            report(attempt)
            assert again(item).state == "pending"


def test_a_generation_of_another_companion_or_version_blocks_the_same_scope() -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        ingress.route(version=2)
        ingress.admit(change(7))
        assert refused(item).code == "active_generation"
        drain_claims()
        ingress.route("other", flow="other.flow")
        ingress.admit(change(7))
        drain_claims()
        assert refused(item).code == "active_generation"


@pytest.mark.parametrize("other", [8, "7 "])
def test_a_generation_of_another_source_blocks_nothing(other: Any) -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        ingress.admit(change(other))
        again(item)


def test_a_per_event_item_is_replayed_in_the_order_of_its_lane() -> None:
    with recording() as seen:
        ingress = open_with_route(mode="per_event")
        item = dead(seen, ingress, events=1)
        ingress.admit(change(7))
        new = again(item)
        assert (new.execution_class, new.projection_key, new.state, new.lane_key) == ("per_event", None, "blocked", item.lane_key)
        assert new.work_id.startswith("evt:")
        drain_claims()
    assert [(work_id, ordinals) for work_id, _, ordinals in seen.runs][1] == (new.work_id, [1])
    assert states(7) == ["dead", "processed", "processed"]


def test_a_lane_less_item_of_a_projection_stays_per_event() -> None:
    with recording() as seen:
        ingress = open_with_route()
        seen.raises.append(DeadLetter("bad"))
        ingress.admit(change(7, lane=None))
        drain_claims()
        new = again(WorkItem.objects.get())
        assert (new.execution_class, new.lane_key) == ("per_event", None)
        drain_claims()
    assert WorkItem.objects.get(id=new.id).state == "processed"


def test_a_replay_keeps_its_own_route_version_also_when_it_is_retired() -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        ingress.route(version=2, flow="test.absent")
        routes.retire("default", "contact", actor="test")
        new = again(item)
        assert (new.route_id, new.route_version, new.companion_flow) == (item.route_id, 1, "record")
        assert drain_claims() == 1


def test_a_replay_runs_under_its_own_incarnation_after_an_upgrade() -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        ingress.upgrade()
        new = again(item)
        assert (new.pack_id, new.projection_key) == (item.pack_id, item.projection_key)
        assert drain_claims() == 1


@pytest.mark.parametrize("how", ["no snapshot", "another class"])
def test_without_proof_of_its_class_nothing_is_replayed(how: str) -> None:
    with recording() as seen:
        item = dead(seen, open_with_route())
    event = Event.objects.filter(id=item.event_id)
    original = event.values("route_snapshot", "projection_key").get()
    event.update(**({"route_snapshot": None} if how == "no snapshot" else {"projection_key": None}))
    before = (WorkItem.objects.count(), Event.objects.count())
    assert refused(item).code == "no_class_proof"
    assert (WorkItem.objects.count(), Event.objects.count()) == before
    event.update(**original)


def test_what_was_discarded_is_not_replayed_and_what_is_replayed_is_not_discarded() -> None:
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        discard(item.work_id, actor="me", reason="old")
        assert refused(item).code == "discarded"
        other = dead(seen, ingress, contact=8)
        again(other)
        assert isinstance(discard(other.work_id, actor="me", reason="old"), Refused)


@pytest.mark.parametrize("work_id", ["", "csp:unknown", "é", "\udc80", "x" * 300])
def test_what_does_not_exist_is_not_found(work_id: str) -> None:
    open_with_route()
    found = replay(work_id, actor="me", reason="fixed")
    assert isinstance(found, Refused)
    assert found.code == "not_found"


@pytest.mark.parametrize("state", ["pending", "processing", "processed"])
def test_only_dead_items_are_replayed(state: str) -> None:
    ingress = open_with_route()
    ingress.admit(change(7))
    with recording():
        if state != "pending":
            attempt = ByHand().claim_one()
            if state == "processed":
                report(attempt)
    assert refused(generations(7)[0]).code == "not_dead"


def test_many_are_replayed_at_once_with_a_result_each() -> None:
    with recording() as seen:
        ingress = open_with_route()
        first, second = dead(seen, ingress), dead(seen, ingress)
        other = dead(seen, ingress, contact=8, events=1)
        results = replay_many([second.work_id, "csp:unknown", other.work_id, first.work_id], actor="me", reason="fixed")
        assert [type(result) for result in results] == [Deferred, Refused, Replayed, Replayed]
        drain_claims()
        assert isinstance(replay(second.work_id, actor="me", reason="fixed"), Replayed)
        drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1, 2, 3], [7], [4, 5, 6]]


def test_a_replay_never_repeats_a_delivery() -> None:
    with recording() as seen:
        ingress = open_with_route()
        event = change(7)
        seen.raises.append(DeadLetter("bad"))
        ingress.admit(event)
        drain_claims()
        again(generations(7)[0])
        report_ = ingress.admit(event)
        assert (report_.events, report_.duplicates, report_.repaired) == (0, 1, 0)
        drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1], [1]]


def test_the_snapshot_is_the_authority_of_a_replay() -> None:
    with recording() as seen:
        item = dead(seen, open_with_route(queue_class="bulk"))
        new = again(item)
    assert new.queue_class == "bulk"
    assert RouteFacts.from_snapshot(Event.objects.get(id=new.event_id).route_snapshot or "").queue_class == "bulk"


def test_without_its_namespace_nothing_is_replayed() -> None:
    with recording() as seen:
        item = dead(seen, open_with_route())
    before = WorkItem.objects.count(), Event.objects.count()
    Namespace.objects.filter(name="default").update(name="renamed")
    found = refused(item)
    Namespace.objects.filter(name="renamed").update(name="default")
    assert (found.code, found.reason) == ("not_found", "namespace 'default' does not exist")
    assert (WorkItem.objects.count(), Event.objects.count()) == before


def test_a_task_that_was_lost_before_a_replay_is_repaired_behind_it() -> None:
    """The replay's place is after the lost event's: it represents its own inputs alone, so it covers nothing else."""
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        lost = change(7)
        ingress.admit(lost)
        WorkItem.objects.filter(state="pending").delete()
        assert again(item).lane_ordinal == 5
        assert ingress.admit(lost).repaired == 1
        drain_claims()
    assert [ordinals for _, _, ordinals in seen.runs] == [[1, 2, 3], [4]]


def test_what_comes_after_a_repaired_event_does_not_start_behind_the_replay() -> None:
    """A replay's ordinal is only its place in the queue: as a lower bound it would cut off what lies before it and never ran."""
    with recording() as seen:
        ingress = open_with_route()
        item = dead(seen, ingress)
        lost = change(7)
        ingress.admit(lost)
        WorkItem.objects.filter(state="pending").delete()
        assert again(item).lane_ordinal == 5
        assert ingress.admit(lost).repaired == 1
        ingress.admit(change(7))
        while drain_claims():
            continue
    assert [ordinals for _, _, ordinals in seen.runs] == [[1, 2, 3], [4, 6]]


def test_the_database_itself_takes_one_replay_of_an_item() -> None:
    first = work_row(event_row(PAGES), "dead")
    made = replay_row(first)
    with pytest.raises(IntegrityError, match="ReplayOfWorkId"):
        replay_row(first)
    assert list(WorkItem.objects.exclude(replay_of_work_id=None)) == [made]
    Event.objects.filter(replay_of_event_id=first.event_id).exclude(id=made.event_id).delete()  # of the one that was refused
