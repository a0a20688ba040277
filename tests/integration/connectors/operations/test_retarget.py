"""Replay under another route version or pack incarnation: another projection, the same lineage, the same execution class."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.models import Route
from connectors.operations.bulk_jobs import results
from connectors.operations.retarget import replay_retargeted
from connectors.operations.work_filters import WorkFilter
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.integrity.invariants import audit
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed, Result
from tests.support import commands, factories
from tests.support.deliveries import Ingress, change, changes, generations, open_ingress, ordinals
from tests.support.flows_of_tests import recording
from tests.support.jobs_by_hand import preview
from tests.support.workers_by_hand import ByHand

pytestmark = pytest.mark.usefixtures("database")


def die(ingress: Ingress, **route: object) -> WorkItem:
    """A dead item of contact 7 with three inputs (one, where the route is per event)."""
    ingress.route(**route)
    ingress.admit(*changes(7, 1 if route.get("mode") == "per_event" else 3))
    with recording() as seen:
        seen.raises += [DeadLetter("bad")]
        drain_claims()
    return generations(7)[0]


def retarget(item: WorkItem) -> Result:
    return replay_retargeted([item.work_id], actor="me", reason="fixed")[0]


def test_the_current_version_runs_the_same_inputs_as_another_projection() -> None:
    ingress = open_ingress()
    dead = die(ingress)
    newer = ingress.route(version=2)
    result = retarget(dead)
    assert isinstance(result, Replayed)
    with recording() as seen:
        drain_claims()
    replay = WorkItem.objects.get(work_id=result.replay_work_id)
    assert (replay.route_id, replay.route_version, replay.replay_of_work_id) == (newer.id, 2, dead.work_id)
    assert replay.projection_key != dead.projection_key
    assert seen.inputs == ordinals(7)
    assert audit().ok


def test_an_upgraded_pack_runs_it_under_its_new_incarnation() -> None:
    ingress = open_ingress()
    dead = die(ingress)
    upgraded = factories.install("generic", version="2")
    factories.route(upgraded, "contact", mode="projection", flow="test.record", kind="contact.changed", version=2)
    result = retarget(dead)
    assert isinstance(result, Replayed)
    assert WorkItem.objects.get(work_id=result.replay_work_id).pack_id == upgraded.id
    assert audit().ok


@pytest.mark.parametrize(
    ("before", "after", "lane"),
    [("invoice:{id}", "order:{id}", "order:7"), ("invoice:{id}", "", ""), ("", "order:{type}:{kind}", "order:contact:changed")],
)
def test_a_replay_runs_in_the_lane_that_the_new_route_gives_it(before: str, after: str, lane: str) -> None:
    """Beside what is new in that lane, one at a time."""
    ingress = open_ingress()
    dead = die(ingress, mode="per_event", target_lane=before)
    ingress.route(mode="per_event", target_lane=after, version=2)
    ingress.admit(change(7))
    result = retarget(dead)
    assert isinstance(result, Replayed)
    replay = WorkItem.objects.get(work_id=result.replay_work_id)
    assert replay.lane_key == generations(7)[1].lane_key
    assert Event.objects.get(id=replay.event_id).target_mutation_lane == lane
    with recording():
        assert len(ByHand().claim()) == 1
    assert audit().ok


@pytest.mark.parametrize(
    ("contact", "before", "after", "code"),
    [
        ("SEVEN", {}, {"source_id_case": "fold"}, "source_change"),
        ("7" * 500, {"mode": "per_event"}, {"mode": "per_event", "target_lane": "{id}-{id}"}, "unfit"),
    ],
)
def test_what_the_new_route_would_take_for_another_source_or_not_at_all_is_refused(
    contact: str, before: dict[str, Any], after: dict[str, Any], code: str
) -> None:
    ingress = open_ingress()
    ingress.route(**before)
    ingress.admit(change(contact))
    with recording() as seen:
        seen.raises += [DeadLetter("bad")]
        drain_claims()
    ingress.route(version=2, **after)
    dead = WorkItem.objects.get()
    refused = retarget(dead)
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert list(results(preview(chosen=WorkFilter(work=(dead.work_id,)), retarget=True))) == [refused]
    assert WorkItem.objects.count() == 1


@pytest.mark.parametrize(("first", "second"), [("projection", "per_event"), ("per_event", "projection")])
def test_the_execution_class_never_changes(first: str, second: str) -> None:
    ingress = open_ingress()
    dead = die(ingress, mode=first)
    ingress.route(mode=second, version=2)
    refused = retarget(dead)
    assert isinstance(refused, Refused)
    assert refused.code == "class_change"
    assert WorkItem.objects.count() == 1


def test_the_event_kind_never_changes() -> None:
    ingress = open_ingress()
    dead = die(ingress)
    ingress.route(kind="contact.other", version=2)
    refused = retarget(dead)
    assert isinstance(refused, Refused)
    assert refused.code == "kind_change"


def test_a_retired_route_is_no_target() -> None:
    dead = die(open_ingress())
    Route.objects.update(is_current=False)
    refused = retarget(dead)
    assert isinstance(refused, Refused)
    assert refused.code == "no_current_route"


def test_another_identity_of_the_source_that_is_active_refuses_it() -> None:
    ingress = open_ingress()
    dead = die(ingress)
    ingress.route(version=2)
    ingress.admit(change(7))
    refused = retarget(dead)
    assert isinstance(refused, Refused)
    assert (refused.code, generations(7)[-1].work_id in refused.reason) == ("active_generation", True)


def test_a_dry_run_of_the_command_refuses_a_retired_route_as_the_replay_would() -> None:
    dead = die(open_ingress())
    Route.objects.update(is_current=False)
    dry_code, dry = commands.run("dlq", "replay", dead.work_id, "--retarget", "--dry-run")
    code, real = commands.run("dlq", "replay", dead.work_id, "--retarget", "--reason", "x")
    assert (dry_code, code) == (1, 1)
    assert dry["refused"] == real["refused"]
    assert [one["code"] for one in dry["refused"]] == ["no_current_route"]


def test_the_command_retargets() -> None:
    ingress = open_ingress()
    dead = die(ingress)
    ingress.route(version=2)
    code, answer = commands.run("dlq", "replay", dead.work_id, "--retarget", "--reason", "fixed")
    assert code == 0
    (replayed,) = answer["replayed"]
    assert WorkItem.objects.get(work_id=replayed["replay_work_id"]).route_version == 2
