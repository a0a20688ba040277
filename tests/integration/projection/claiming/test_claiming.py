"""Claim: due work under a lease, by weights, one of a lane at a time, and only what nothing keeps from running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models import Model

from connectors.models import Namespace, Pack, Route
from projection.admission import activation
from projection.claiming.claim import claim
from projection.completion import lanes
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.inspection.why import why
from projection.models import Event, LaneHold, ProjectionProtocol, WorkItem
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.workers_by_hand import ByHand, at, item_of, let_retries_come_due, report, taken

pytestmark = pytest.mark.usefixtures("sound_database")


def per_event(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(mode="per_event", **options)
    return ingress


def test_a_claim_leases_the_item_counts_the_attempt_and_holds_the_lane() -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording():
        before = clock.now()
        attempt = ByHand("worker-a").claim_one()
    item = item_of(attempt)
    assert (item.state, item.attempts, item.lease_owner, item.lease_token) == ("processing", 1, "worker-a", attempt.token)
    assert item.lane_holder_key == item.lane_key
    assert item.claimed_at is not None
    assert before <= item.claimed_at <= clock.now()
    assert item.lease_expires_at == item.claimed_at + timedelta(seconds=60)


def test_only_one_of_a_lane_is_claimed_until_it_has_ended() -> None:
    ingress = per_event()
    ingress.admit(*changes(7, 3), change(8))
    with recording():
        worker = ByHand()
        batch = worker.claim()
        assert [row.source_lane for row in taken(batch)] == ["contact:7", "contact:8"]
        assert worker.claim() == []
        report(batch[0])
        assert [row.lane_position for row in taken(worker.claim())] == [2]


def test_a_head_that_waits_to_retry_is_never_overtaken_and_other_lanes_run() -> None:
    ingress = per_event()
    ingress.admit(*changes("L", 3), change("M"))
    with recording():
        first, second = ByHand("worker-a"), ByHand("worker-b")
        (head,) = first.claim(1)
        report(head, State.RETRY, outcome="retry", error="no", delay_ms=600_000)
        assert [row.source_lane for row in taken(second.claim())] == ["contact:M"]
        assert first.claim() == second.claim() == []
        let_retries_come_due()
        again = second.claim_one()
        assert (again.claimed.item.id, again.claimed.item.attempts) == (head.claimed.item.id, 2)
        report(again)
        assert [row.lane_position for row in taken(first.claim())] == [2]


def test_an_unblocked_row_too_many_is_decided_by_position() -> None:
    ingress = per_event()
    ingress.admit(*changes(7, 3))
    WorkItem.objects.update(state="pending")
    with recording():
        assert [row.lane_position for row in taken(ByHand().claim())] == [1]
    WorkItem.objects.filter(lane_position=3).update(state="blocked")
    WorkItem.objects.filter(lane_position=2).update(state="blocked")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(7, {"interactive": 4, "default": 2, "bulk": 1}), (14, {"interactive": 8, "default": 4, "bulk": 2})],
)
def test_queue_classes_share_a_batch_by_weight(limit: int, expected: dict[str, int]) -> None:
    ingress = open_ingress()
    for name in expected:
        ingress.route(name, mode="per_event", queue_class=name)
    ingress.admit(*[change(n, lane=None) for n in range(20)])
    with recording():
        assert Counter(one.claimed.route.queue_class for one in ByHand().claim(limit)) == expected


def test_what_one_class_leaves_unused_the_others_get() -> None:
    ingress = open_ingress()
    ingress.route("bulk", mode="per_event", queue_class="bulk")
    ingress.route("interactive", mode="per_event", queue_class="interactive", on=("click",))
    ingress.admit(*[change(n, lane=None) for n in range(9)], change(99, kind="click", lane=None))
    with recording():
        counted = Counter(one.claimed.route.queue_class for one in ByHand().claim(8))
    assert counted == {"bulk": 7, "interactive": 1}


def test_a_claim_never_takes_more_than_its_limit_over_states_and_classes() -> None:
    ingress = open_ingress()
    for name in ("interactive", "default", "bulk", "unheard-of"):
        ingress.route(name, mode="per_event", queue_class=name)
    ingress.admit(*[change(n, lane=None) for n in range(10)])
    with recording():
        for attempt in ByHand().claim(10):
            report(attempt, State.RETRY, give_back=1)
        assert [len(ByHand().claim(n)) for n in (1, 2, 3, 5, 8, 13)] == [1, 2, 3, 5, 8, 13]


@pytest.mark.parametrize("due", [timedelta(seconds=30), timedelta(days=3)])
def test_a_claim_that_finds_nothing_due_says_when_something_will_be(due: timedelta) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    WorkItem.objects.update(run_after=clock.now() + due)
    found = claim(10, owner="a", lease_seconds=60)
    assert found.items == ()
    assert found.next_due is not None
    assert due.total_seconds() - 10 < found.next_due <= due.total_seconds()


def test_a_claim_on_an_empty_database_waits_for_nothing() -> None:
    assert claim(10, owner="a", lease_seconds=60).next_due is None


def _stop(rows: type[Model]) -> Callable[[bool], None]:
    def switch(on: bool) -> None:
        rows._default_manager.update(paused_at=clock.now() if on else None)

    return switch


def _hold(on: bool) -> None:
    item = WorkItem.objects.get(source_lane="contact:7")
    assert item.lane_key is not None
    if on:
        assert lanes.hold("default", item.lane_key, "contact:7", actor="me", reason="look")
        assert not lanes.hold("default", item.lane_key, "contact:7", actor="me", reason="twice")
    else:
        assert lanes.release(item.lane_key, actor="me")
        assert not lanes.release(item.lane_key, actor="me")


@pytest.mark.parametrize("mode", ["projection", "per_event"])
@pytest.mark.parametrize(
    "switch", [_hold, _stop(Namespace), _stop(Pack), _stop(Route)], ids=["lane held", "namespace", "pack", "route"]
)
def test_held_or_paused_work_waits_and_runs_afterwards(switch: Callable[[bool], None], mode: str) -> None:
    ingress = open_ingress()
    ingress.route(mode=mode)
    ingress.admit(change(7))
    with recording():
        switch(True)
        assert ByHand().claim() == []
        assert states(7) == ["pending"]
        assert WorkItem.objects.get().attempts == 0
        switch(False)
        assert len(ByHand().claim()) == 1


def test_a_hold_stops_the_next_item_and_not_the_running_one() -> None:
    ingress = per_event()
    ingress.admit(*changes(7, 2), change(8))
    with recording():
        running = next(one for one in ByHand().claim() if one.claimed.item.source_lane == "contact:7")
        lanes.hold("default", str(running.claimed.item.lane_key), "contact:7", actor="me", reason="look")
        report(running)
        assert ByHand().claim() == []
    assert states(7) == ["processed", "pending"]


def test_a_hold_may_end_by_itself_and_the_lane_be_held_again() -> None:
    ingress = per_event()
    ingress.admit(change(7))
    key = str(WorkItem.objects.get().lane_key)
    ends = clock.now() + timedelta(hours=1)
    assert lanes.hold("default", key, "contact:7", actor="me", reason="look", release_at=ends)
    with recording():
        assert ByHand().claim() == []
        assert f"Released automatically at {ends:%Y-%m-%dT%H}" in why(WorkItem.objects.get()).sentence
        with at(ends):
            assert not lanes.release(key, actor="me")
            assert len(ByHand().claim()) == 1
            assert why(WorkItem.objects.get()).code == "processing"
            assert lanes.hold("default", key, "contact:7", actor="me", reason="again")
    assert [hold.reason for hold in LaneHold.objects.all()] == ["again"]


def test_a_lane_held_between_pre_selection_and_swap_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7), change(8))
    preselect = WorkItem.objects.preselect_work_items

    def hold_meanwhile(*args: Any, **options: Any) -> Any:
        found = preselect(*args, **options)
        _hold(on=True)
        return found

    monkeypatch.setattr(WorkItem.objects, "preselect_work_items", hold_meanwhile)
    with recording():
        assert [row.source_lane for row in taken(ByHand().claim())] == ["contact:8"]


def test_a_retrying_head_of_a_held_lane_waits_too() -> None:
    ingress = per_event()
    ingress.admit(change(7))
    with recording():
        report(ByHand().claim_one(), State.RETRY, outcome="retry", error="no")
        _hold(on=True)
        assert ByHand().claim() == []
        _hold(on=False)
        assert len(ByHand().claim()) == 1


def test_an_item_whose_flow_nobody_has_is_left_alone_and_burns_no_budget() -> None:
    ingress = per_event(flow="test.absent", on=("changed",))
    ingress.route("known", mode="per_event", on=("other",))
    ingress.admit(change(7), change(8, kind="other"))
    with recording():
        assert [row.source_lane for row in taken(ByHand().claim())] == ["contact:8"]
    (waiting,) = WorkItem.objects.filter(companion_flow="absent")
    assert (waiting.state, waiting.attempts) == ("pending", 0)


@pytest.fixture
def not_activated() -> Ingress:
    ingress = open_ingress()
    ProjectionProtocol.objects.all().delete()
    activation.forget()
    return ingress


def test_before_activation_only_per_event_work_is_claimed(not_activated: Ingress) -> None:
    not_activated.route("projected", on=("changed",))
    not_activated.route("single", mode="per_event", on=("single",))
    not_activated.admit(change(7), change(8, kind="single"))
    assert set(Event.objects.values_list("executor_owner", "status")) == {("event", "pending")}
    with recording():
        assert [row.execution_class for row in taken(ByHand().claim())] == ["per_event"]
        fenced = Event.objects.get(source_id="8")
        assert (fenced.executor_owner, fenced.status) == ("work_item", "skipped")
        activation.activate("test")
        assert [row.source_lane for row in taken(ByHand().claim())] == ["contact:7"]


@pytest.mark.parametrize(("lease", "claimed"), [(timedelta(minutes=1), 0), (timedelta(minutes=-1), 1)], ids=["fresh", "stale"])
def test_a_legacy_lease_is_respected_while_it_lasts(not_activated: Ingress, lease: timedelta, claimed: int) -> None:
    not_activated.route(mode="per_event")
    not_activated.admit(change(7))
    Event.objects.update(lease_token="old-binary", lease_expires_at=clock.now() + lease, status="processing")
    with recording():
        assert len(ByHand().claim()) == claimed
    assert Event.objects.get().executor_owner == ("work_item" if claimed else "event")


def test_a_generation_that_was_advanced_after_it_was_read_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    preselect = WorkItem.objects.preselect_work_items
    arrivals = iter([True])

    def advance_meanwhile(*args: Any, **options: Any) -> Any:
        found = preselect(*args, **options)
        if next(arrivals, False):
            ingress.admit(change(7))
        return found

    monkeypatch.setattr(WorkItem.objects, "preselect_work_items", advance_meanwhile)
    with recording():
        assert ByHand().claim() == []
        assert states(7) == ["pending"]
        attempt = ByHand().claim_one()
    assert [one.ordinal for one in attempt.inputs] == [1, 2]


def test_two_workers_never_take_the_same_item(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(*[change(n, lane=None) for n in range(4)])
    preselect = WorkItem.objects.preselect_work_items
    rivals = iter([True])
    rival_took: list[int] = []

    def claim_meanwhile(*args: Any, **options: Any) -> Any:
        found = preselect(*args, **options)
        if next(rivals, False):
            rival_took.extend(row.id for row in taken(ByHand("rival").claim(2)))
        return found

    monkeypatch.setattr(WorkItem.objects, "preselect_work_items", claim_meanwhile)
    with recording():
        mine = {row.id for row in taken(ByHand("mine").claim(4))}
    assert len(rival_took) == 2
    assert mine == {item.id for item in WorkItem.objects.filter(lease_owner="mine")}
    assert not mine & set(rival_took)
    assert len(mine) == 2


def test_a_lane_that_got_a_holder_meanwhile_costs_only_that_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.route("target", mode="per_event", on=("other",))
    ingress.admit(*changes(7, 2), change(8), change(9))
    WorkItem.objects.update(state="pending")
    preselect = WorkItem.objects.preselect_work_items
    rivals = iter([True])

    def hold_lane_meanwhile(*args: Any, **options: Any) -> Any:
        found = preselect(*args, **options)
        if next(rivals, False):
            item = WorkItem.objects.get(source_lane="contact:7", lane_position=2)
            WorkItem.objects.filter(id=item.id).update(
                state="processing", lane_holder_key=item.lane_key, lease_token="rival", lease_expires_at=clock.now(), attempts=1,
                claimed_at=clock.now(), lease_owner="rival",
            )  # fmt: skip
        return found

    monkeypatch.setattr(WorkItem.objects, "preselect_work_items", hold_lane_meanwhile)
    with recording():
        assert sorted(row.source_lane for row in taken(ByHand().claim())) == ["contact:8", "contact:9"]
    assert [(item.lane_position, item.state) for item in generations(7)] == [(1, "pending"), (2, "processing")]


def test_lanes_that_are_lost_round_after_round_cost_nobody_else_his_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each swap a rival takes another lane: after three rounds what is left is taken one by one."""
    ingress = per_event()
    ingress.admit(*[change(n) for n in range(8)])
    preselect = WorkItem.objects.preselect_work_items
    held: list[str] = []

    def lose_one(*args: Any, **options: Any) -> Any:
        found = preselect(*args, **options)
        chosen = WorkItem.objects.get(id=found[0][0])
        twin = WorkItem.objects.get(id=chosen.id)
        twin.pk, twin.work_id, twin.state, twin.lane_holder_key = None, f"evt:{'0' * 63}{len(held)}", "processing", chosen.lane_key
        twin.lease_token, twin.lease_expires_at, twin.attempts, twin.claimed_at = "rival", clock.now(), 1, clock.now()
        twin.save()
        held.append(chosen.source_lane)
        return found

    monkeypatch.setattr(WorkItem.objects, "preselect_work_items", lose_one)
    with recording():
        took = [row.source_lane for row in taken(ByHand().claim())]
    assert len(held) == 4, "three rounds and the last look"
    assert sorted(took + held) == [f"contact:{n}" for n in range(8)]
    left = WorkItem.objects.filter(state="pending")
    assert sorted(left.values_list("source_lane", flat=True)) == sorted(held)
    assert set(left.values_list("attempts", flat=True)) == {0}
    WorkItem.objects.filter(lease_token="rival").delete()


def test_a_duplicate_that_is_no_lost_lane_is_no_lost_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7))

    def broken(*_: Any, **__: Any) -> int:
        raise IntegrityError(1062, "Duplicate entry 'x' for key 'WorkId'")

    with recording():
        with monkeypatch.context() as patch:
            patch.setattr(WorkItem.objects, "claim_work_items", broken)
            with pytest.raises(IntegrityError, match="WorkId"):
                ByHand().claim()
        assert [item.attempts for item in generations(7)] == [0]
        assert len(ByHand().claim()) == 1


def test_a_process_without_any_flow_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = per_event()
    ingress.admit(change(7))
    monkeypatch.setattr("projection.flows._registry", {})
    assert claim(10, owner="a", lease_seconds=60).ids == []
    assert [(item.state, item.attempts) for item in generations(7)] == [("pending", 0)]


def test_a_class_that_settles_hides_no_due_class_that_nobody_has_met() -> None:
    """Both lie between the same two known classes, of which a look finds the first alone."""
    ingress = open_ingress()
    ingress.route("first", on=("first",), queue_class="archive", settle=60.0)
    ingress.route("second", on=("second",), queue_class="audit")
    ingress.admit(change(1, kind="first"), change(2, kind="second"))
    with recording() as seen:
        assert drain_claims() == 1
    assert seen.sources == ["2"]
    assert claim(10, owner="a", lease_seconds=60).next_due is not None
