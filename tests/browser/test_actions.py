"""Replay and live refresh with a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from connectors.models import AuditEntry
from projection.execution.worker import drain_claims
from projection.flows import DeadLetter
from projection.models import WorkItem
from projection.states import State
from tests.browser.conftest import Visit
from tests.support import console_world, rows
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]


def two_dead_letters() -> list[str]:
    """WorkIds of two generations that died in the product's own way."""
    ingress = open_ingress()
    ingress.route()
    ingress.admit(change(1), change(2))
    with recording() as seen:
        seen.raises = [DeadLetter("no such account"), DeadLetter("no such account")]
        drain_claims()
    return list(WorkItem.objects.filter(state=State.DEAD).order_by("id").values_list("work_id", flat=True))


def test_a_dead_letter_is_replayed_from_its_page(visit: Visit) -> None:
    dead, _ = two_dead_letters()
    visit.open("/admin/")
    visit.page.click("text=All dead letters")
    visit.page.click(f'a[href$="/{dead}/"]')
    visit.page.click("button:text-is('Replay')")
    assert WorkItem.objects.count() == 2  # the browser asks for the reason first
    visit.page.fill("input[name=reason]", "the account exists now")
    visit.page.click("button:text-is('Replay')")
    expect(visit.page.locator(".messagelist")).to_contain_text("Replayed as")
    expect(visit.page.locator("#replays")).to_be_visible()
    assert WorkItem.objects.filter(replay_of_work_id=dead).count() == 1
    assert AuditEntry.objects.get().reason == "the account exists now"
    visit.page.fill("input[name=reason]", "again")
    visit.page.click("button:text-is('Replay')")
    expect(visit.page.locator(".messagelist")).to_contain_text("already replayed as")
    assert visit.complaints == []


def test_the_overview_refreshes_itself_until_it_is_paused(visit: Visit) -> None:
    console_world.build()
    visit.page.clock.install()
    visit.open("/admin/")
    card = visit.page.locator(".card-bad .card-count")
    expect(card).to_have_text("1")
    rows.work_row(rows.event_row(source_id="late"), State.DEAD)
    with visit.page.expect_response(lambda response: response.url.endswith("/admin/")):
        visit.page.clock.run_for(5_100)
    expect(card).to_have_text("2")
    visit.page.click("[data-live-switch]")
    expect(visit.page.locator("[data-live-switch]")).to_have_attribute("aria-pressed", "true")
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.page.clock.run_for(30_000)
    assert asked == []
    visit.page.click("[data-live-switch]")
    with visit.page.expect_response(lambda response: response.url.endswith("/admin/")):
        visit.page.clock.run_for(5_100)
    assert visit.complaints == []


def test_the_menu_opens_on_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 400, "height": 800})
    visit.open("/admin/")
    link = visit.page.locator("#navigation").get_by_text("Dead letters")
    expect(link).to_be_hidden()
    visit.page.click("text=Menu")
    expect(link).to_be_visible()
    link.click()
    visit.page.wait_for_url("**/admin/dead-letters/")


def test_rooms_are_reached_by_keyboard(visit: Visit) -> None:
    visit.open("/admin/")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip-to-content-link"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("document.activeElement.id") == "content-start"
