"""Why is this not running: one sentence with a link to where the reason is looked at or ended, on each lane and work item."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors.models import Route
from ops_ui.console.base.operation_tags import sentence
from projection.admission import activation
from projection.database.clock import now
from projection.facts import RateLimit, RouteFacts
from projection.inspection.why import why
from projection.limits import circuit_breaker, route_limits
from projection.models import Destination, LaneHold, ProjectionProtocol, RateBucket, Worker, WorkItem
from projection.states import State
from tests.support import console_world, factories, rows
from tests.support.console_world import HOSTILE

pytestmark = pytest.mark.usefixtures("database")

LATER = timedelta(hours=1)


@pytest.fixture
def facts(database: None) -> RouteFacts:
    activation.activate("test")
    activation.forget()
    console_world.worker("worker")
    return factories.route(factories.install(), "contact", mode="projection", limit=RateLimit("api", 10, 1.0))


@pytest.fixture
def client(facts: RouteFacts) -> Client:
    return console_world.client("viewer")


def waiting(facts: RouteFacts, state: str = State.PENDING, **columns: Any) -> WorkItem:
    return rows.work_row(rows.event_row(facts), state, **columns)


def told(client: Client, item: WorkItem) -> list[Any]:
    """What the generation's page, the lane's page and the lane's line in the list say: the same sentence with the same link."""
    pages = [f"/admin/generations/{item.work_id}/", f"/admin/lanes/{item.lane_key}/"]
    found = [client.get(path).context["why"] for path in pages]
    response = client.get("/admin/lanes/")
    return [*found, *(line for lane, line in response.context["lines"] if lane.key == item.lane_key)]


def stop(code: str, facts: RouteFacts) -> WorkItem:
    """An item that waits for the reason named."""
    if code == "retry":
        return waiting(facts, State.RETRY, last_error="ValueError: no")
    if code == "processing":
        return waiting(facts, State.PROCESSING)
    if code == "lease_expired":
        return waiting(facts, State.PROCESSING, lease_expires_at=now() - LATER)
    if code == "settling":
        return waiting(facts, run_after=now() + LATER)
    item = waiting(facts)
    if code == "held":
        LaneHold.objects.create(
            namespace="default", lane_key=item.lane_key, lane="contact:42", reason="outage", held_by="ann", held_at=now()
        )
    elif code == "paused":
        Route.objects.update(paused_at=now(), paused_by="ann", pause_reason="outage")
    elif code == "not_activated":
        ProjectionProtocol.objects.all().delete()
        activation.forget()
    elif code == "no_worker":
        Worker.objects.all().delete()
    elif code == "no_flow":
        WorkItem.objects.update(companion_pack="acme", companion_flow="unheard_of")
    elif code == "limited":
        why(item)  # the process meets its route
        route_limits.declare([item.route_id])
        RateBucket.objects.update(next_slot_at=now() + LATER)
    elif code == "parked":
        Destination.objects.create(
            name_key=circuit_breaker.key_of("log"),
            name="log",
            state="open",
            failures=5,
            openings=1,
            parked_at=now(),
            parked_until=now() + LATER,
            last_error="HTTP 503",
        )
    return WorkItem.objects.get()


@pytest.mark.parametrize(
    ("code", "link", "said"),
    [
        ("held", "/admin/lanes/{lane}/#facts", "held by ann"),
        ("paused", "/admin/pauses/", "Route contact paused by ann"),
        ("parked", "/admin/destinations/", "Destination log is parked (circuit open)"),
        ("limited", "/admin/destinations/#limits", "Rate limit api reached"),
        ("retry", "/admin/generations/{work}/#attempts", "ValueError: no"),
        ("settling", "/admin/generations/{work}/#range", "Settling: collecting events until"),
        ("processing", "/admin/workers/", "Running since"),
        ("lease_expired", "/admin/workers/", "stopped responding"),
        ("no_worker", "/admin/workers/", "Start `script/server` or `script/manage run_worker`"),
        ("no_flow", "/admin/workers/", "No running worker has the flow"),
        ("not_activated", "/admin/", "Run `script/manage activate_projection`"),
        ("due", "/admin/generations/?state=processing", "waiting for a free worker"),
    ],
)
def test_each_reason_leads_to_its_place(client: Client, facts: RouteFacts, code: str, link: str, said: str) -> None:
    item = stop(code, facts)
    found = told(client, item)
    assert len(found) == 3
    for one in found:
        assert one.code == code
        assert said in one.sentence
        assert one.url == link.format(lane=item.lane_key, work=item.work_id)
    assert client.get(found[0].url.partition("#")[0]).status_code == 200


def test_what_waits_for_other_work_leads_to_it(client: Client, facts: RouteFacts) -> None:
    active = waiting(facts, State.PROCESSING)
    queued = waiting(facts, State.BLOCKED)
    response = client.get(f"/admin/generations/{queued.work_id}/")
    assert response.context["why"].code == "queued"
    assert f'href="/admin/generations/{active.work_id}/">Show the earlier work' in response.content.decode()


def test_a_lane_that_is_held_and_empty_says_by_whom(client: Client) -> None:
    LaneHold.objects.create(
        namespace="default", lane_key="a" * 64, lane="contact:9", reason="under review", held_by="ada", held_at=now()
    )
    content = client.get("/admin/lanes/", {"head": "held"}).content.decode()
    assert "under review" in content
    assert "ada" in content


def test_a_list_of_lanes_reads_as_many_times_whatever_it_holds(client: Client, facts: RouteFacts) -> None:
    counted = []
    for number in range(2):
        for place in range(20):
            rows.work_row(rows.event_row(facts, source_id=f"{number} {place}"))
        client.get("/admin/lanes/")
        with CaptureQueriesContext(connection) as queries:
            client.get("/admin/lanes/")
        counted.append(len(queries))
    assert counted[0] == counted[1]
    assert counted[0] <= 20


def test_times_and_commands_of_a_sentence_are_set_apart() -> None:
    html = sentence("Due since 2026-11-30T05:59:37.000001Z: run `script/manage repair`.")
    assert '<time datetime="2026-11-30T05:59:37.000001+00:00"' in html
    assert "<code><bdi" in html
    assert "`" not in html


@pytest.mark.parametrize("text", [HOSTILE, "9999-99-99T99:99:99Z", "``", "`<b>`", "2026-11-30T05:59:37Z`"])
def test_foreign_text_in_a_sentence_stays_literal(text: str) -> None:
    html = sentence(f"Waiting to retry: {text}")
    assert "<b>" not in html
    assert "<svg" not in html
    assert "<img" not in html
    if "9999" in text:
        assert text in html
