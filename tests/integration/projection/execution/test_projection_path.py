"""The main path: deliveries become events, events coalesce into generations, generations run with all of their inputs."""

from __future__ import annotations

import pytest

from projection.execution.worker import drain_claims
from projection.flows import DeadLetter, RetryLater, Skip
from projection.models import Event, WorkFailure, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from tests.support.deliveries import change, changes, generations, open_ingress, ordinals, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("database")


def test_a_burst_becomes_one_generation_with_every_input_in_order() -> None:
    ingress = open_ingress()
    ingress.route()
    with recording() as seen:
        report = ingress.admit(*changes(7, 10))
        assert (report.receipts, report.events, report.duplicates) == (1, 10, 0)
        assert states(7) == ["pending"]
        assert drain_claims() == 1
    assert seen.runs == [(generations(7)[0].projection_key, 1, ordinals(7))]
    assert states(7) == ["processed"]


def test_later_events_advance_an_unclaimed_generation() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    ingress.admit(*changes(7, 3))
    (only,) = generations(7)
    assert only.lane_ordinal == ordinals(7)[-1]
    assert only.lane_position == ordinals(7)[0]
    with recording() as seen:
        drain_claims()
    assert seen.inputs == ordinals(7)


def test_sources_do_not_share_generations() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*[change(n % 5) for n in range(25)])
    with recording() as seen:
        assert drain_claims() == 5
    assert sorted(seen.inputs) == [e.enqueue_ordinal for e in Event.objects.order_by("enqueue_ordinal")]


def test_a_settling_generation_is_not_claimed_before_its_deadline() -> None:
    ingress = open_ingress()
    ingress.route(settle=3600.0)
    ingress.admit(change(7))
    first = generations(7)[0].run_after
    ingress.admit(change(7))
    assert generations(7)[0].run_after == first
    with recording():
        assert drain_claims() == 0
    assert states(7) == ["pending"]


def test_per_event_items_of_one_lane_run_one_after_another_in_order() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*changes(7, 4))
    assert states(7) == ["pending", "blocked", "blocked", "blocked"]
    with recording() as seen:
        assert drain_claims() == 4
    assert seen.inputs == ordinals(7)
    assert set(states(7)) == {"processed"}


def test_a_duplicate_delivery_of_an_event_changes_nothing() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    ingress.admit(event)
    before = WorkItem.objects.values().get()
    report = ingress.admit(event, change(8))
    assert (report.events, report.duplicates) == (1, 1)
    assert WorkItem.objects.filter(source_lane="contact:7").values().get() == before


def test_a_missing_lane_falls_back_to_one_item_per_event() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7, lane=None), change(7, lane=None))
    items = WorkItem.objects.order_by("id")
    assert [(i.execution_class, i.lane_key, i.projection_key, i.state) for i in items] == [("per_event", None, None, "pending")] * 2
    with recording() as seen:
        assert drain_claims() == 2
    assert seen.inputs == ordinals(7)


def test_an_event_without_a_route_is_kept_unrouted() -> None:
    ingress = open_ingress()
    report = ingress.admit(change(7))
    assert report.events == 1
    event = Event.objects.get()
    assert (event.route_id, event.route_snapshot, event.projection_key) == (None, None, None)
    assert not WorkItem.objects.exists()


def test_a_failing_flow_is_retried_then_dead_and_the_lane_moves_on() -> None:
    ingress = open_ingress()
    from projection.facts import RetryPolicy

    ingress.route(mode="per_event", retry=RetryPolicy(base=0, attempts=1))
    ingress.admit(*changes(7, 2))
    with recording() as seen:
        seen.raises += [ValueError("no such contact")]
        assert drain_claims() == 2
    assert states(7) == ["dead", "processed"]
    failure = WorkFailure.objects.get()
    assert failure.outcome == "dead"
    assert failure.error == "ValueError: no such contact (attempt 1 of 1 failed)"


def test_retry_keeps_the_lane_and_the_generation() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording() as seen:
        seen.raises += [RetryLater(3600)]
        assert drain_claims() == 1
        ingress.admit(*changes(7, 3))
        assert states(7) == ["retry", "blocked"]
        assert drain_claims() == 0
    active, successor = generations(7)
    assert active.lane_holder_key == active.lane_key
    assert (successor.projection_active_key, successor.lane_ordinal) == (None, ordinals(7)[-1])


@pytest.mark.parametrize(("outcome", "state"), [(Skip("gone"), "skipped"), (DeadLetter("bad"), "dead")])
def test_a_terminal_end_activates_the_successor_with_exactly_the_later_inputs(outcome: Exception, state: str) -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    with recording() as seen:

        def arrive_meanwhile(generation: object) -> None:
            seen(generation)

        seen.raises += [outcome]
        from projection import flows

        original = flows.find("test.record")
        assert original is not None

        def run(generation: object) -> None:
            if not seen.runs:
                ingress.admit(*changes(7, 3))
            original.run(generation)

        flows.forget("test.record")
        flows.flow("test.record")(run)
        assert drain_claims() == 2
    assert states(7) == [state, "processed"]
    assert [len(inputs) for _, _, inputs in seen.runs] == [1, 3]
    assert seen.inputs == ordinals(7)


def test_a_dead_generation_is_replayed_once_with_its_inputs() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(*changes(7, 3))
    with recording() as seen:
        seen.raises += [DeadLetter("bad")]
        drain_claims()
        dead = generations(7)[0]
        first = replay(dead.work_id, actor="me", reason="fixed")
        assert isinstance(first, Replayed)
        again = replay(dead.work_id, actor="me", reason="fixed")
        assert isinstance(again, Refused)
        assert again.code == "already_replayed"
        drain_claims()
        ingress.admit(*changes(7, 2))
        drain_claims()
    assert [inputs for _, _, inputs in seen.runs] == [ordinals(7)[:3], ordinals(7)[:3], ordinals(7)[3:]]
    assert states(7) == ["dead", "processed", "processed"]
    assert WorkItem.objects.get(work_id=dead.work_id).state == "dead"


def test_a_retry_that_only_counts_itself_is_a_duplicate_and_no_conflict() -> None:
    import json

    from connectors import models
    from connectors.delivery import Headers, IngressRequest
    from connectors.ingress import endpoint_facts
    from connectors.ingress.store import store_within
    from connectors.routing import router
    from tests.support import factories
    from tests.support.deliveries import forget_caches

    forget_caches()
    factories.endpoint(factories.install("hubspot"), "hub")
    facts = endpoint_facts.load(("default", "hub"))
    assert facts is not None
    event = {
        "eventId": 1,
        "portalId": 2,
        "subscriptionId": 3,
        "subscriptionType": "contact.creation",
        "objectId": 4,
        "occurredAt": 5,
    }
    for more in ({"attemptNumber": 0}, {"attemptNumber": 1}, {"attemptNumber": 2, "changeFlag": "NEW"}):
        store_within(facts, IngressRequest("POST", "", Headers(), json.dumps([{**event, **more}]).encode()))
        router.drain_receipts("default")
    counted = models.Receipt.objects.order_by("id").values_list("event_count", "duplicate_count", "conflict_count")
    assert list(counted) == [(1, 0, 0), (0, 1, 0), (0, 1, 1)]


def test_a_route_published_while_a_batch_is_read_routes_that_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    from connectors.routing import route_table

    ingress = open_ingress()
    ingress.route()
    load, newer = route_table.load, []

    def load_then_publish(namespace: str) -> route_table.RouteBook:
        book = load(namespace)
        if not newer:
            newer.append(ingress.route(version=2))
        return book

    monkeypatch.setattr(route_table, "load", load_then_publish)
    ingress.admit(change(7))
    assert [item.route_id for item in generations(7)] == [newer[0].id]


def test_a_projection_route_with_a_target_lane_admits_nothing_and_loses_nothing() -> None:
    from connectors.models import Receipt

    ingress = open_ingress()
    ingress.route(target_lane="invoice:{id}")
    report = ingress.admit(change(7))
    assert (report.events, report.deferred) == (0, 1)
    receipt = Receipt.objects.get()
    assert receipt.state == "pending"
    assert "target lane 'invoice:7'" in str(receipt.last_error)
