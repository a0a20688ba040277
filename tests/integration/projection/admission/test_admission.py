"""Admission: accepted events become facts in order, duplicates change nothing or repair exactly the missing task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.bench.workbench import texts_sent
from connectors.configuration import routes
from connectors.models import Namespace, Receipt
from connectors.routing.router import drain_receipts
from projection.execution.worker import drain_claims
from projection.identity import lane_key
from projection.models import Event, WorkItem
from tests.support import factories
from tests.support.deliveries import change, changes, generations, open_ingress, ordinals, states
from tests.support.flows_of_tests import recording

pytestmark = pytest.mark.usefixtures("sound_database")


def work_rows() -> list[dict[str, Any]]:
    return list(WorkItem.objects.order_by("id").values())


def all_ordinals(namespace: str = "default") -> list[int]:
    return list(Event.objects.filter(namespace=namespace).order_by("id").values_list("enqueue_ordinal", flat=True))


def test_ordinals_are_contiguous_in_receipt_order_and_each_namespace_counts_for_itself() -> None:
    ingress, other = open_ingress(), open_ingress(in_namespace="other")
    ingress.route()
    ingress.send(*changes(1, 3))
    ingress.send(change(2))
    other.admit(*changes(1, 2))
    ingress.admit(*changes(3, 2))
    ingress.admit(change(1))
    assert all_ordinals() == [1, 2, 3, 4, 5, 6, 7]
    assert all_ordinals("other") == [1, 2]
    assert [event.source_id for event in Event.objects.filter(namespace="default").order_by("enqueue_ordinal")] == list("1112331")
    assert dict(Namespace.objects.values_list("name", "next_enqueue_ordinal")) == {"default": 8, "other": 3}


def test_the_place_in_its_delivery_is_kept_with_the_event() -> None:
    ingress = open_ingress()
    ingress.admit(*changes(1, 3))
    assert list(Event.objects.order_by("enqueue_ordinal").values_list("delivery_sequence", flat=True)) == [0, 1, 2]


@pytest.mark.parametrize("together", [True, False], ids=["one delivery", "two deliveries of one batch"])
def test_of_duplicates_in_one_batch_the_first_stands(together: bool) -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    if together:
        ingress.send(event, event)
    else:
        ingress.send(event)
        ingress.send(event, change(8))
    report = drain_receipts()
    assert (report.events, report.duplicates, report.conflicts) == ((1, 1, 0) if together else (2, 1, 0))
    assert ordinals(7) == [1]


@pytest.mark.parametrize("mode", ["projection", "per_event"])
def test_a_duplicate_of_an_earlier_batch_changes_nothing_whatever_became_of_its_work(mode: str) -> None:
    ingress = open_ingress()
    ingress.route(mode=mode)
    event = change(7)
    ingress.admit(event)
    with recording():
        for _ in range(2):
            before = work_rows()
            report = ingress.admit(event)
            assert (report.events, report.duplicates, report.repaired) == (0, 1, 0)
            assert work_rows() == before
            drain_claims()
    assert states(7) == ["processed"]


def test_duplicates_are_known_across_route_versions_and_pack_upgrades() -> None:
    ingress = open_ingress()
    ingress.route()
    first, second = change(7), change(7)
    ingress.admit(first)
    ingress.route(version=2, settle=3600.0)
    ingress.admit(second)
    before = work_rows()
    upgraded = ingress.upgrade()
    report = upgraded.admit(first, second)
    assert (report.events, report.duplicates) == (0, 2)
    assert work_rows() == before
    assert upgraded.admit(change(7)).events == 1
    assert len({item.projection_key for item in generations(7)}) == 3


def test_a_duplicate_with_another_payload_is_a_conflict_on_its_receipt_and_the_first_fact_stands() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    ingress.admit(event)
    before = work_rows()
    report = ingress.admit(change(8), {**event, "n": "another"})
    assert (report.events, report.duplicates, report.conflicts) == (1, 1, 1)
    receipt = Receipt.objects.order_by("-id")[0]
    assert (receipt.state, receipt.event_count, receipt.duplicate_count, receipt.conflict_count) == ("partial", 1, 1, 1)
    (verdict,) = json.loads(receipt.verdicts)
    assert (verdict["item"], verdict["code"]) == (1, "conflict")
    assert json.loads(Event.objects.get(source_id="7").payload)["n"] == event["n"]
    assert work_rows()[:1] == before


def test_a_conflict_inside_a_batch_is_recorded_too() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    report = ingress.admit(event, {**event, "n": "another"})
    assert (report.events, report.conflicts) == (1, 1)
    assert json.loads(Event.objects.get().payload)["n"] == event["n"]


def test_a_conflicting_duplicate_repairs_the_work_of_the_fact_that_stands() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    ingress.admit(event)
    WorkItem.objects.all().delete()
    report = ingress.admit({**event, "contact": "8", "lane": "contact:8"})
    assert (report.conflicts, report.repaired) == (1, 1)
    assert (states(7), states(8)) == (["pending"], [])


@pytest.mark.parametrize("mode", ["projection", "per_event"])
def test_a_duplicate_repairs_exactly_the_missing_task(mode: str) -> None:
    ingress = open_ingress()
    ingress.route(mode=mode)
    lost, kept = change(7), change(8)
    ingress.admit(lost, kept)
    (original,) = WorkItem.objects.filter(source_lane="contact:7").values()
    WorkItem.objects.filter(source_lane="contact:7").delete()
    others = work_rows()
    report = ingress.admit(lost, kept)
    assert (report.events, report.duplicates, report.repaired) == (0, 2, 1)
    (repaired,) = WorkItem.objects.filter(source_lane="contact:7").values()
    varying = {"id", "created_date", "run_after"}
    assert {k: v for k, v in repaired.items() if k not in varying} == {k: v for k, v in original.items() if k not in varying}
    assert [row for row in work_rows() if row["id"] != repaired["id"]] == others
    with recording() as seen:
        assert drain_claims() == 2
    assert sorted(seen.inputs) == [1, 2]


def test_a_missing_task_is_repaired_behind_history_and_together_with_news() -> None:
    ingress = open_ingress()
    ingress.route()
    with recording() as seen:
        ingress.admit(change(7))
        drain_claims()
        lost = change(7)
        ingress.admit(lost)
        WorkItem.objects.filter(state="pending").delete()
        report = ingress.admit(lost, change(7))
        assert (report.events, report.duplicates, report.repaired) == (1, 1, 1)
        drain_claims()
    assert [inputs for _, _, inputs in seen.runs] == [[1], [2, 3]]


def test_a_task_of_a_retired_route_is_repaired_by_the_event_s_own_snapshot() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    ingress.admit(event)
    routes.retire("default", "contact", actor="test")
    WorkItem.objects.all().delete()
    report = ingress.admit(event)
    assert (report.events, report.repaired) == (0, 1)
    assert [item.execution_class for item in generations(7)] == ["projection"]


def test_a_delivery_that_a_retired_route_took_is_not_kept_again_as_unrouted() -> None:
    ingress = open_ingress()
    ingress.route()
    event = change(7)
    ingress.admit(event)
    routes.retire("default", "contact", actor="test")
    report = ingress.admit(event, change(7))
    assert (report.events, report.duplicates) == (1, 1)
    assert [event.route_id is None for event in Event.objects.order_by("id")] == [False, True]


def test_an_unrouted_delivery_that_comes_again_once_there_is_a_route_is_routed() -> None:
    ingress = open_ingress()
    event = change(7)
    ingress.admit(event)
    assert ingress.admit(event).duplicates == 1
    ingress.route()
    assert ingress.admit(event).events == 1
    assert states(7) == ["pending"]
    with recording() as seen:
        drain_claims()
    assert seen.inputs == [2]


def test_two_companions_never_wait_for_each_other_over_one_source() -> None:
    ingress = open_ingress()
    ingress.route("crm", mode="per_event", flow="crm.contact")
    ingress.route("erp", mode="per_event", flow="erp.contact")
    ingress.admit(*changes(7, 2))
    assert [(item.companion_pack, item.state) for item in generations(7)] == [
        ("crm", "pending"), ("erp", "pending"), ("crm", "blocked"), ("erp", "blocked"),
    ]  # fmt: skip


def test_a_target_lane_is_shared_by_routes_companions_and_sources() -> None:
    ingress = open_ingress()
    ingress.route("crm", mode="per_event", flow="crm.contact", target_lane="account:{kind}")
    ingress.route("erp", mode="per_event", flow="erp.contact", target_lane="account:{kind}")
    ingress.admit(change(7), change(8))
    items = WorkItem.objects.order_by("id")
    assert {item.lane_key for item in items} == {lane_key("default", "", "", "account:changed")}
    assert [item.state for item in items] == ["pending", "blocked", "blocked", "blocked"]


def test_a_projection_route_without_a_lane_keeps_its_target_lane() -> None:
    ingress = open_ingress()
    ingress.route(target_lane="account:{id}")
    ingress.admit(change(7, lane=None))
    (item,) = WorkItem.objects.all()
    assert (item.execution_class, item.lane_key) == ("per_event", lane_key("default", "", "", "account:7"))


def test_items_without_a_lane_are_independent() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7, lane=None), change(7, lane=None))
    assert [item.state for item in WorkItem.objects.all()] == ["pending", "pending"]


def test_a_late_repair_keeps_its_place_in_the_lane() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    first, second = change(7), change(7)
    ingress.admit(first, second)
    WorkItem.objects.filter(lane_position=1).delete()
    WorkItem.objects.update(state="pending")
    ingress.admit(first)
    assert [(item.lane_position, item.state) for item in WorkItem.objects.order_by("lane_position")] == [
        (1, "pending"),
        (2, "pending"),
    ]
    with recording() as seen:
        drain_claims()
    assert seen.inputs == [1, 2]


@pytest.mark.parametrize("mode", ["projection", "per_event"])
@pytest.mark.parametrize("round_", ["fresh", "existing", "duplicates"])
def test_statements_do_not_grow_with_events_or_sources(mode: str, round_: str) -> None:
    counted = {}
    for sources in (3, 60):
        namespace = f"n{sources}"
        ingress = open_ingress(in_namespace=namespace)
        ingress.route(mode=mode, settle=3600.0 if mode == "projection" else 0.0)
        events = [change(n % sources) for n in range(sources * 2)]
        if round_ != "fresh":
            ingress.admit(*events)
        ingress.send(*(events if round_ == "duplicates" else [change(n % sources) for n in range(sources * 2)]))
        with texts_sent() as texts:
            report = drain_receipts(namespace)
        assert report.duplicates == (sources * 2 if round_ == "duplicates" else 0)
        counted[sources] = texts.count
    assert counted[3] == counted[60]
    assert counted[60] <= 25


def test_an_advanced_generation_never_moves_in_its_lane() -> None:
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(7))
    ingress.admit(change(8), change(7))
    (item,) = generations(7)
    assert (item.lane_position, item.lane_ordinal) == (1, 3)


def test_a_lost_handoff_is_repaired_by_the_next_event() -> None:
    ingress = open_ingress()
    ingress.route()
    with recording() as seen:
        seen.acts.append(lambda _: ingress.admit(change(7)))
        ingress.admit(change(7))
        drain_claims(batch=1)
        WorkItem.objects.filter(lane_ordinal=2).delete()
        ingress.admit(change(7))
        WorkItem.objects.filter(state="pending").update(projection_active_key=None, state="blocked")
        ingress.admit(change(7))
        assert states(7)[-1] == "pending"
        drain_claims()
    assert seen.inputs[-3:] == [2, 3, 4]


def test_admission_in_an_unknown_namespace_admits_nothing() -> None:
    ingress = open_ingress()
    ingress.send(change(7))
    Namespace.objects.all().delete()
    report = drain_receipts("default")
    assert (report.events, report.deferred) == (0, 1)
    factories.namespace()
    assert Receipt.objects.get().state == "pending"


def test_a_delivery_that_a_route_took_is_no_new_unrouted_fact_in_the_same_batch_either() -> None:
    ingress = open_ingress()
    ingress.route(on=("changed",))
    report = ingress.admit(change(7, id="d-1"), change(7, id="d-1", kind="other"))
    assert (report.events, report.duplicates) == (1, 1)


@pytest.mark.parametrize("mode", ["projection", "per_event"])
def test_a_work_item_keeps_the_order_snapshot_of_its_selected_event(mode: str) -> None:
    """Ingress time, never the provider's: mixed rows are ordered by it, long after the provider's clock is forgotten."""
    ingress = open_ingress()
    ingress.route(mode=mode)
    for year in ("2031", "2001"):
        ingress.admit(change(7, at=f"{year}-01-01T00:00:00Z"), change(8), change(7, at=f"{year}-06-01T00:00:00Z"))
    events = {event.id: event for event in Event.objects.all()}
    for item in WorkItem.objects.all():
        event = events[item.event_id]
        assert (item.lane_ordinal, item.event_created_date, item.delivery_sequence) == (
            event.enqueue_ordinal, event.created_date, event.delivery_sequence,
        )  # fmt: skip
