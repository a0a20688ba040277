"""Claims beside everything that changes the same rows: whoever is second sees what the first committed, and takes nothing it must not."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from connectors.routing.router import drain_receipts
from projection.claiming.claim import claim
from projection.completion import lanes
from projection.completion.complete import complete
from projection.database.catalogue import execute
from projection.execution.worker import drain_claims
from projection.leases import Ending
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.cancel import _cancel, cancel
from projection.states import State
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rivals import Rival, admission_open
from tests.support.workers_by_hand import ByHand, report

pytestmark = pytest.mark.usefixtures("sound_database")


def with_route(**options: Any) -> Ingress:
    ingress = open_ingress()
    ingress.route(**options)
    return ingress


def take() -> list[str]:
    """WorkIds that another worker claims."""
    return [one.item.work_id for one in claim(100, owner="rival", lease_seconds=60).items]


def test_a_claim_that_waits_for_an_admission_does_not_take_the_selection_it_moved() -> None:
    ingress = with_route()
    ingress.admit(change(7))
    with recording() as seen:
        with admission_open(ingress, change(7)):
            rival = Rival(take)
            rival.waits()
        assert rival.result() == []
        assert drain_claims() == 1
    assert seen.inputs == [1, 2]


def test_an_admission_that_waits_for_a_claim_makes_a_successor() -> None:
    ingress = with_route()
    ingress.admit(change(7))
    ingress.send(change(7))
    with recording():
        with transaction.atomic():
            item = WorkItem.objects.get()
            WorkItem.objects.claim_work_items([(item.id, item.event_id, item.state)], owner="a", token="t", lease_seconds=60)
            rival = Rival(drain_receipts)
            rival.waits()
        assert rival.result().events == 1
    assert states(7) == ["processing", "blocked"]


def test_a_hold_does_not_wait_for_a_claim_and_stops_the_next_one() -> None:
    ingress = with_route(mode="per_event")
    ingress.admit(*changes(7, 2))
    item = generations(7)[0]
    lane_key = str(item.lane_key)
    with recording():
        with transaction.atomic():
            WorkItem.objects.claim_work_items([(item.id, item.event_id, "pending")], owner="a", token="t", lease_seconds=60)
            assert Rival(lambda: lanes.hold("default", lane_key, "contact:7", actor="me", reason="look")).ends_at_once()
        assert states(7) == ["processing", "blocked"]
        (claimed,) = WorkItem.objects.lock_work_items([item.id])
        complete([Ending(claimed, "t", State.RETRY, give_back=1)])
        assert take() == []


def hold_of(lane_key: str) -> dict[str, object]:
    """Values of an operator's hold without an end."""
    return {
        "namespace": "default", "lane_key": lane_key, "lane": "contact:7", "reason": "look", "actor": "me", "release_at": None,
    }  # fmt: skip


def test_a_claim_beside_an_uncommitted_hold_takes_the_item_or_not_and_never_fails() -> None:
    with_route(mode="per_event").admit(*changes(7, 2), change(8))
    lane_key = str(generations(7)[0].lane_key)
    with recording():
        with transaction.atomic():
            execute("insert_hold", **hold_of(lane_key))
            rival = Rival(take)
        took = rival.result()  # servers differ in whether the swap waits for the hold
        assert generations(8)[0].work_id in took
        assert take() == []
        assert len(took) + WorkItem.objects.filter(state="pending").count() == 2


def test_of_two_holds_of_one_lane_the_second_is_told() -> None:
    with_route(mode="per_event").admit(change(7))
    lane_key = str(generations(7)[0].lane_key)
    with transaction.atomic():
        execute("insert_hold", **hold_of(lane_key))
        rival = Rival(lambda: lanes.hold("default", lane_key, "contact:7", actor="you", reason="me too"))
        rival.waits()
    assert rival.result() is False


def test_a_claim_that_waits_for_a_cancel_takes_nothing() -> None:
    with_route(mode="per_event").admit(change(7))
    with recording():
        with transaction.atomic():
            _cancel(generations(7)[0].work_id)
            rival = Rival(take)
            rival.waits()
        assert rival.result() == []
    assert states(7) == ["cancelled"]


def test_a_cancel_that_waits_for_a_claim_is_refused() -> None:
    with_route(mode="per_event").admit(change(7))
    item = generations(7)[0]
    with transaction.atomic():
        WorkItem.objects.claim_work_items([(item.id, item.event_id, "pending")], owner="a", token="t", lease_seconds=60)
        rival = Rival(lambda: cancel(item.work_id, actor="me", reason="no"))
        rival.waits()
    result = rival.result()
    assert isinstance(result, Refused)
    assert result.code == "processing"


def test_two_claims_of_one_lane_have_one_winner_and_nobody_fails() -> None:
    with_route(mode="per_event").admit(*changes(7, 2), change(8))
    WorkItem.objects.update(state="pending")
    second = generations(7)[1]
    with recording():
        with transaction.atomic():
            WorkItem.objects.claim_work_items([(second.id, second.event_id, "pending")], owner="a", token="t", lease_seconds=60)
            rival = Rival(take)
            rival.waits()
        assert rival.result() == [generations(8)[0].work_id]
    assert states(7) == ["pending", "processing"]


def test_many_workers_run_each_item_once_and_each_lane_in_order() -> None:
    ingress = with_route(mode="per_event")
    ingress.admit(*[change(n % 4) for n in range(40)])
    with recording() as seen:
        rivals = [Rival(lambda: drain_claims(batch=3)) for _ in range(3)]
        for rival in rivals:
            rival.result()
        drain_claims()
    assert sorted(seen.inputs) == list(range(1, 41))
    for lane in range(4):
        mine = [inputs[0] for (_, _, inputs), source in zip(seen.runs, seen.sources, strict=True) if source == str(lane)]
        assert mine == sorted(mine)


def test_a_worker_by_hand_and_a_draining_one_do_not_meet() -> None:
    with_route(mode="per_event").admit(change(7), change(8))
    with recording() as seen:
        mine = ByHand().claim(1)
        assert drain_claims() == 1
        report(mine[0])
    assert len(seen.runs) == 1
