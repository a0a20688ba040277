"""The search box of the top bar, from a keyboard, and the page that it leads to."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.support import console_world

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

FOCUSED = "document.activeElement.id"


def test_a_slash_leads_to_the_box_and_the_box_to_the_way(visit: Visit) -> None:
    world = console_world.build()
    visit.open("/admin/lanes/")
    visit.page.keyboard.press("/")
    assert visit.page.evaluate(FOCUSED) == "quick-q"
    expect(visit.page.locator("#quick-q")).to_have_value("")
    visit.page.keyboard.type(world.dead)
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/admin/trace/?q=*")
    expect(visit.page.locator(".way .badge-dead").first).to_be_visible()
    expect(visit.page.locator(".step-dead")).to_have_count(1)
    expect(visit.page.locator(".step-failed")).to_have_count(2)
    assert visit.complaints == []


def test_a_slash_that_is_written_is_written(visit: Visit) -> None:
    visit.open("/admin/trace/")
    visit.page.click("#trace-q")
    visit.page.keyboard.type("a/b")
    expect(visit.page.locator("#trace-q")).to_have_value("a/b")
    visit.page.locator("#navigation a").first.focus()
    visit.page.keyboard.press("/")
    assert visit.page.evaluate(FOCUSED) == "quick-q"
    visit.page.keyboard.press("Escape")
    assert visit.page.evaluate("document.activeElement.closest('#navigation') !== null")
    assert visit.complaints == []


def test_the_form_works_without_script(visit: Visit) -> None:
    console_world.build()
    context = visit.page.context.browser.new_context(java_script_enabled=False)
    context.add_cookies(visit.page.context.cookies())
    page = context.new_page()
    page.goto(f"{visit.address}/admin/")
    page.fill("#quick-q", "nothing has this")
    page.press("#quick-q", "Enter")
    expect(page.get_by_text("No match for nothing has this")).to_be_visible()
    context.close()
