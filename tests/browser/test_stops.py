"""Stopping and starting by mouse: a lane, a route, a destination, one waiting item."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from connectors.models import AuditEntry, Route
from projection.admission import activation
from projection.database.clock import now
from projection.limits import circuit_breaker
from projection.models import Destination, LaneHold, WorkItem
from projection.states import State
from tests.browser.conftest import Visit
from tests.browser.test_pages import findings
from tests.support import console_world, factories, rows

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]


def waiting(state: str = State.PENDING) -> WorkItem:
    activation.activate("test")
    activation.forget()
    console_world.worker("worker", seen_ago=timedelta(minutes=-10))
    facts = factories.route(factories.install(), "contact", mode="projection")
    return rows.work_row(rows.event_row(facts), state)


def test_a_lane_is_held_from_the_list_on_and_released_from_the_reason(visit: Visit) -> None:
    item = waiting()
    visit.open("/admin/lanes/")
    visit.page.get_by_role("link", name="contact:42").click()
    visit.page.fill("input[name=reason]", "account under review")
    visit.page.fill("input[name=until]", "2h")
    visit.page.get_by_role("button", name="Hold").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Lane contact:42 held")
    assert findings(visit) == []
    visit.open(f"/admin/generations/{item.work_id}/")
    expect(visit.page.locator(".why")).to_contain_text("held by operator")
    visit.page.get_by_role("link", name="Show the lane's hold").click()
    visit.page.fill("input[name=reason]", "reviewed")
    visit.page.get_by_role("button", name="Release").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Lane contact:42 released.")
    assert not LaneHold.objects.exists()
    assert list(AuditEntry.objects.order_by("id").values_list("action", "reason")) == [
        ("lane.hold", "account under review"),
        ("lane.release", "reviewed"),
    ]
    assert visit.complaints == []


def test_a_route_is_paused_and_resumed(visit: Visit) -> None:
    item = waiting()
    visit.open("/admin/pauses/")
    expect(visit.page.locator(".empty")).to_contain_text("Nothing is paused.")
    form = visit.page.get_by_role("form", name="Pause a route")
    form.get_by_label("Reason").fill("moves to another host")
    form.get_by_role("button", name="Pause route").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Paused route contact. Waiting work: 1.")
    assert findings(visit) == []
    visit.open(f"/admin/lanes/{item.lane_key}/")
    visit.page.get_by_role("link", name="Show the pause").click()
    visit.page.get_by_label("Reason to resume route contact").fill("moved")
    visit.page.get_by_role("button", name="Resume").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Resumed route contact.")
    assert not Route.objects.get().is_paused
    assert visit.complaints == []


def test_a_destination_is_tried_now(visit: Visit) -> None:
    Destination.objects.create(
        name_key=circuit_breaker.key_of("crm"),
        name="crm",
        state="open",
        failures=5,
        openings=1,
        parked_at=now(),
        parked_until=now() + timedelta(minutes=9),
        last_error="HTTP 503",
    )
    visit.open("/admin/destinations/")
    visit.page.get_by_label("Reason to try crm").fill("they say it is back")
    visit.page.get_by_role("button", name="Try now").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("The next item tries destination crm now")
    expect(visit.page.get_by_role("button", name="Try now")).to_have_count(0)
    assert visit.complaints == []


def test_waiting_work_is_retried_and_cancelled_from_its_page(visit: Visit) -> None:
    item = waiting(State.RETRY)
    visit.open(f"/admin/generations/{item.work_id}/")
    visit.page.fill("input[name=reason]", "it is back")
    visit.page.get_by_role("button", name="Retry now").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Retry is due now")
    visit.page.fill("input[name=reason]", "not needed any more")
    visit.page.get_by_role("button", name="Cancel").click()
    expect(visit.page.locator("h1 ~ .badge")).to_have_text("cancelled")
    expect(visit.page.locator("input[name=reason]")).to_have_count(0)
    assert visit.complaints == []
