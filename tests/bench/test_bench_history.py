"""`bench history` at a small size: exact sizes, every state, and nothing that the audit finds."""

from __future__ import annotations

import pytest

from connectors.bench import history
from connectors.bench.history_plan import ERRORS, HistoryRefused, Size
from connectors.models import Namespace, Receipt, Record, Route
from connectors.operations.ingress_audit import audit_everything
from projection.facts import RouteFacts, SourceLane
from projection.identity import generation_work_id, lane_key, projection_key
from projection.job_models import JobItem
from projection.models import Event, LaneHold, WorkFailure, WorkItem
from projection.states import ReceiptState, State
from tests.support import commands, factories

pytestmark = pytest.mark.usefixtures("database")

SMALL = ("--events", "12050", "--work", "4000", "--dead", "1000")


def make_small() -> None:
    code, answer = commands.run("bench", "history", *SMALL)
    assert code == 0, answer
    assert {name: answer[name] for name in ("namespace", "events", "work_items", "dead_letters", "replays")} == {
        "namespace": "history", "events": 12050, "work_items": 4000, "dead_letters": 1000, "replays": 100,
    }  # fmt: skip


def test_the_sizes_are_exact_and_the_audit_finds_nothing() -> None:
    make_small()
    assert (Event.objects.count(), WorkItem.objects.count()) == (12050, 4000)
    assert WorkItem.objects.filter(state=State.DEAD).count() == 1000
    assert WorkItem.objects.exclude(replay_of_work_id=None).count() == JobItem.objects.count() == 100
    report = audit_everything()
    assert report.ok, report.violations


def test_every_kind_of_row_is_there() -> None:
    make_small()
    assert set(WorkItem.objects.values_list("state", flat=True)) == {state.value for state in State}
    assert set(Receipt.objects.values_list("state", flat=True)) == {state.value for state in ReceiptState}
    assert {version for _, version in Route.objects.values_list("route_key", "version")} == {1, 2}
    assert set(Event.objects.exclude(route_id=None).values_list("route_id", flat=True)) == set(
        Route.objects.values_list("id", flat=True)
    )
    assert Event.objects.filter(route_id=None).exists()
    assert LaneHold.objects.exists()
    assert Record.objects.filter(deleted=True).exists()
    assert WorkItem.objects.exclude(discarded_at=None).exists()
    fingerprints = WorkFailure.objects.values_list("error_fingerprint", flat=True)
    assert len(set(fingerprints)) == len(ERRORS)
    busiest = Event.objects.filter(source_id="1").count()
    assert busiest > 5 * Event.objects.filter(source_id=Event.objects.order_by("id")[1].source_id).count()


def test_keys_are_those_that_admission_makes() -> None:
    make_small()
    item = WorkItem.objects.filter(source_lane="contact:1", replay_of_work_id=None).order_by("-id")[0]
    event = Event.objects.get(id=item.event_id)
    route = RouteFacts.from_snapshot(event.route_snapshot or "")
    assert event.projection_key == projection_key(route, event.pack_incarnation, SourceLane("", ("contact:1",)))
    assert item.work_id == generation_work_id(str(event.projection_key), event.enqueue_ordinal, event.id)
    assert item.lane_key == lane_key("history", "headrace", SourceLane("", ("contact:1",)), "")
    first = WorkItem.objects.filter(projection_key=event.projection_key).order_by("id")[0]
    assert first.work_id == first.projection_key


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        (Size(1000, 350, 100), "multiple of 100"),
        (Size(1000, 300, 100), "at least 400"),
        (Size(300, 400, 100), "--events must be at least"),
        (Size(1000, 400, 11), "--dead must be 12 to 100"),
        (Size(1000, 400, 101), "--dead must be 12 to 100"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(sizes: Size, reason: str) -> None:
    with pytest.raises(HistoryRefused, match=reason):
        history.make("history", sizes, beside=False)
    assert not Namespace.objects.exists()


def test_a_database_in_use_is_refused_unless_told() -> None:
    factories.receipt(factories.install(), {})
    code, answer = commands.run("bench", "history", *SMALL)
    assert (code, Event.objects.count()) == (2, 0)
    assert "--beside" in answer["error"]["reason"]
    code, answer = commands.run("bench", "history", *SMALL, "--beside")
    assert code == 0, answer
    report = audit_everything()
    assert report.ok, report.violations


@pytest.mark.parametrize("name", ["default", "a'b", "", "x" * 41])
def test_a_namespace_that_exists_or_is_no_name_is_refused(name: str) -> None:
    factories.namespace("default")
    code, answer = commands.run("bench", "history", *SMALL, "--namespace", name)
    assert code == 2
    assert "namespace" in answer["error"]["reason"]
    assert not Event.objects.exists()
