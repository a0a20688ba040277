"""Progress as it is read from the rows: what is due, what nobody may take, what moved; over HTTP and as a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from connectors.configuration import pausing
from connectors.models import AuditEntry, Receipt, Route
from ops_ui.monitoring import health, progress
from ops_ui.monitoring.progress import RESTART_SECONDS, STUCK_WORKERS_SECONDS
from projection import flows
from projection.claiming.claim import claim
from projection.completion import lanes
from projection.database import clock
from projection.execution.worker import drain_claims
from projection.facts import RateLimit
from projection.limits import circuit_breaker
from projection.limits.queue_classes import WEIGHTS
from projection.models import Destination, ProjectionProtocol, RateBucket, Worker, WorkItem
from tests.support import console_world
from tests.support.commands import run, say
from tests.support.deliveries import Ingress, change, changes, open_ingress
from tests.support.flows_of_tests import Recorder, recording
from tests.support.server_work import texts_recorded
from tests.support.workers_by_hand import let_leases_run_out

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def site() -> Ingress:
    return open_ingress()


@pytest.fixture
def flow() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


def ago(seconds: float) -> datetime:
    return clock.now() - timedelta(seconds=seconds)


def codes() -> list[str]:
    return [one.code for one in progress.findings()]


def ages() -> dict[str, bool]:
    """Stage or queue class → whether something is due there."""
    return {due.queue_class or due.stage: due.since is not None for due in progress.due_ages()}


def waiting(site: Ingress, seconds: float = 10_000, **route: Any) -> WorkItem:
    """One work item that is due since then."""
    site.route(**route)
    site.admit(*changes(1, 1))
    WorkItem.objects.update(run_after=ago(seconds))
    return WorkItem.objects.get()


def test_an_idle_installation_progresses(site: Ingress) -> None:
    assert codes() == []
    assert ages() == {"route": False, "bulk": False, "default": False, "interactive": False}


def test_a_receipt_that_nobody_routes(site: Ingress) -> None:
    site.send(*changes(1, 1))
    Receipt.objects.update(received_at=ago(90))
    assert codes() == ["no_router"]
    console_world.worker("router")
    assert codes() == []
    Receipt.objects.update(received_at=ago(200))
    assert codes() == ["router_stuck"]


def test_a_receipt_that_was_put_off_is_not_due(site: Ingress) -> None:
    site.send(*changes(1, 1))
    Receipt.objects.update(received_at=ago(10_000), next_attempt_at=ago(-60))
    assert codes() == []
    Receipt.objects.update(next_attempt_at=ago(90))
    assert codes() == ["no_router"]


def test_work_that_nobody_takes(site: Ingress) -> None:
    waiting(site)
    assert codes() == ["no_worker"]
    console_world.worker("worker")
    assert codes() == ["workers_stuck"]


def test_work_that_others_are_taken_before(site: Ingress, flow: Recorder) -> None:
    """Something ends all the time; this one is old all the same."""
    waiting(site)
    drain_claims()
    site.admit(*changes(2, 1))
    WorkItem.objects.filter(terminal_at=None).update(run_after=ago(10_000))
    console_world.worker("worker")
    assert codes() == ["work_too_old"]


def test_work_whose_flow_no_worker_has_is_named_with_its_flow(site: Ingress, flow: Recorder) -> None:
    waiting(site, on=("changed",))
    drain_claims()
    site.route("lacking", flow="test.lacking", on=("lacking",))
    site.admit(change(2, kind="lacking"))
    WorkItem.objects.filter(terminal_at=None).update(run_after=ago(50))
    console_world.worker("worker")
    Worker.objects.update(flows_hash=flows.flows_hash())
    assert codes() == []
    WorkItem.objects.filter(terminal_at=None).update(run_after=ago(100))
    (finding,) = progress.findings()
    assert (finding.kind, finding.code) == ("age", "no_flow")
    assert "no running worker has its flow test.lacking" in finding.reason
    WorkItem.objects.filter(terminal_at=None).update(run_after=ago(10_000))
    (finding,) = progress.findings()
    assert (finding.code, "test.lacking" in finding.reason) == ("work_too_old", True)
    assert len(progress.due_ages()) == 4, "a metric has each label once"


def test_the_limit_of_age_is_a_setting(site: Ingress, flow: Recorder, settings: Settings) -> None:
    waiting(site)
    drain_claims()
    site.admit(*changes(2, 1))
    WorkItem.objects.filter(terminal_at=None).update(run_after=ago(100))
    console_world.worker("worker")
    assert codes() == []
    settings.HEADRACE_AGE_LIMIT_SECONDS = 60
    assert codes() == ["work_too_old"]


def test_a_failed_attempt_is_movement(site: Ingress, flow: Recorder) -> None:
    flow.raises = [ValueError("no")]
    waiting(site)
    drain_claims()
    WorkItem.objects.update(run_after=ago(500))
    console_world.worker("worker")
    assert codes() == []


def test_what_settles_is_not_due(site: Ingress) -> None:
    site.route(settle=3600)
    site.admit(*changes(1, 3))
    assert ages()["default"] is False


def test_a_class_that_only_a_route_names_is_looked_at(site: Ingress) -> None:
    waiting(site, queue_class="nightly")
    assert ages()["nightly"] is True
    assert "nightly" in progress.findings()[0].reason


def test_a_held_lane_is_no_standstill(site: Ingress) -> None:
    item = waiting(site)
    lanes.hold(item.namespace, str(item.lane_key), item.source_lane, actor="op", reason="look")
    assert ages()["default"] is False
    assert codes() == []


def test_an_item_whose_lane_another_one_has_is_not_waited_for(site: Ingress, flow: Recorder) -> None:
    """The one behind a long flow, or behind a retry that waits: nobody could take it."""
    site.route(mode="per_event")
    site.admit(*changes(1, 1))
    claim(1, owner="busy", lease_seconds=600)
    site.admit(*changes(1, 1))
    WorkItem.objects.filter(state="blocked").update(state="pending")
    WorkItem.objects.update(run_after=ago(10_000))
    assert ages()["default"] is False


def test_progress_over_http(site: Ingress) -> None:
    assert Client().get("/progressz").json() == {"progressing": True}
    waiting(site)
    answer = Client().get("/progressz")
    assert answer.status_code == 503
    assert (answer.json()["progressing"], answer.json()["code"]) == (False, "no_worker")
    assert [one["code"] for one in answer.json()["findings"]] == ["no_worker"]
    assert answer.headers["Cache-Control"].startswith("max-age=0")
    assert Client().post("/progressz").status_code == 405
    assert Client().get("/readyz").status_code == 200, "it is ready all the same"


def test_what_is_not_ready_does_not_progress(site: Ingress) -> None:
    ProjectionProtocol.objects.all().delete()
    answer = Client().get("/progressz")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_activated")


def test_the_command_has_an_exit_code_for_each(site: Ingress, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("health") == (0, {"ready": True, "progressing": True, "reasons": []})
    waiting(site)
    code, answer = run("health")
    assert (code, answer["ready"], [one["code"] for one in answer["reasons"]]) == (1, True, ["no_worker"])
    code, text = say("health")
    assert code == 1
    assert text.startswith("no_worker: ")
    monkeypatch.setattr(health, "_migrations_of_this_code", lambda: frozenset({("projection", "9999_next")}))
    code, answer = run("health")
    assert (code, answer["ready"], answer["progressing"]) == (2, False, False)
    assert answer["reasons"][0]["code"] == "migrations_missing"


def test_a_database_that_goes_away_between_the_two_looks_is_a_reason(site: Ingress, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    def broken() -> Any:
        raise OperationalError(2013, "lost")

    monkeypatch.setattr("projection.database.clock.now", broken)
    code, answer = run("health")
    assert (code, answer["reasons"][0]["code"]) == (2, "database_unreachable")
    assert Client().get("/progressz").status_code == 503


def test_a_process_that_fell_silent_is_not_alive(site: Ingress) -> None:
    waiting(site)
    console_world.worker("worker")
    Worker.objects.update(seen_at=ago(31))
    assert codes() == ["no_worker"]


# ---- work whose route is, or was, closed: a claim sets it aside into a class of its route


def closed_by(kind: str, site: Ingress) -> Callable[[float], object]:
    """Work of a route that is closed, and set aside; what is returned opens it, so many seconds ago."""
    options = {
        "limit": {"limit": RateLimit("api", 1, 1.0)},
        "destination": {"flow": "test.away"},
    }
    site.route(mode="per_event", **options.get(kind, {}))
    site.admit(*[change(n) for n in range(3)])
    WorkItem.objects.update(run_after=ago(10_000))
    if kind == "limit":
        claim(1, owner="a", lease_seconds=60)
        RateBucket.objects.update(next_slot_at=ago(-3600))
        return lambda seconds: RateBucket.objects.update(next_slot_at=ago(seconds))
    if kind == "destination":
        Destination.objects.create(
            name_key=circuit_breaker.key_of("test.away"),
            name="test.away",
            state="open",
            failures=9,
            openings=1,
            parked_until=ago(-3600),
        )
        return lambda seconds: Destination.objects.update(parked_until=ago(seconds))
    names = {"namespace": "default", "pack": "generic", "route": "contact"}
    pausing.pause(kind, "default", names[kind], actor="op", reason="look")

    def open_again(seconds: float) -> None:
        pausing.resume(kind, "default", names[kind], actor="op", reason="done")
        AuditEntry._base_manager.update(at=ago(seconds))

    return open_again


@pytest.mark.parametrize("kind", ["namespace", "pack", "route", "limit", "destination"])
def test_what_is_closed_is_no_standstill_and_what_was_opened_and_does_not_move_is_one(
    kind: str, site: Ingress, flow: Recorder
) -> None:
    with recording("test.away"):
        open_again = closed_by(kind, site)
        assert not any(ages().values()), "nobody may take it, so nobody is late"
        assert claim(10, owner="a", lease_seconds=60).items == ()
        assert WorkItem.objects.filter(queue_class__startswith="default~").exists()
        assert codes() == []
        open_again(0)
        assert codes() == [], "as if it had come due just now"
        open_again(RESTART_SECONDS + 5)
        assert codes() == ["no_worker"]
        assert {due.queue_class for due in progress.due_ages()} == {"", *WEIGHTS}, "its class is the route's own"
        console_world.worker("worker")
        assert codes() == []
        open_again(STUCK_WORKERS_SECONDS + 5)
        assert codes() == ["workers_stuck"]


def test_work_that_waits_for_a_place_of_its_limit_is_late_once_the_lease_in_it_is_over(site: Ingress, flow: Recorder) -> None:
    site.route(mode="per_event", limit=RateLimit("api", concurrency=1))
    site.admit(*[change(n) for n in range(3)])
    WorkItem.objects.update(run_after=ago(10_000))
    assert len(claim(10, owner="a", lease_seconds=60).items) == 1
    assert claim(10, owner="a", lease_seconds=60).items == ()
    assert codes() == []
    let_leases_run_out()
    assert codes() == ["no_worker"]


def test_a_pause_that_ended_by_itself_counts_from_then(site: Ingress, flow: Recorder) -> None:
    waiting(site)
    pausing.pause("route", "default", "contact", actor="op", reason="look", resume_at=ago(-60))
    claim(10, owner="a", lease_seconds=60)
    Route.objects.update(resume_at=ago(30))
    assert codes() == []
    Route.objects.update(resume_at=ago(90))
    assert codes() == ["no_worker"]


def test_work_in_many_classes_of_closed_routes_is_found(site: Ingress, flow: Recorder) -> None:
    """More of them than this process has met: each costs one look, once."""
    for number in range(6):
        site.route(f"r{number}", mode="per_event", on=(f"k{number}",))
    site.admit(*[change(number, kind=f"k{number}") for number in range(6)])
    WorkItem.objects.update(run_after=ago(10_000))
    pausing.pause("namespace", "default", "default", actor="op", reason="look")
    claim(10, owner="a", lease_seconds=60)
    assert len(set(WorkItem.objects.values_list("queue_class", flat=True))) == 6
    pausing.resume("namespace", "default", "default", actor="op", reason="done")
    AuditEntry._base_manager.update(at=ago(100))
    WorkItem.objects.exclude(queue_class=max(WorkItem.objects.values_list("queue_class", flat=True))).update(run_after=ago(-3600))
    assert codes() == ["no_worker"]
    with texts_recorded() as texts:
        assert codes() == ["no_worker"]
    assert len(texts) <= 9, texts
