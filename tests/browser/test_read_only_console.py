"""The read-only console in a browser: its banner is readable, fits a phone, and a form from before is answered in a sentence."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext
from pytest_django import Settings

from ops_ui.console.base.read_only import SENTENCE
from tests.browser.conftest import log_in
from tests.browser.test_pages import findings
from tests.support import console_world

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_banner_is_accessible_and_fits_a_phone(server: str, context: BrowserContext, settings: Settings, scheme: str) -> None:
    world = console_world.build()
    visit = log_in(server, context, "administrator")
    settings.HEADRACE_CONSOLE_READ_ONLY = True
    visit.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    visit.page.set_viewport_size({"width": 400, "height": 800})
    found = []
    for name in ("overview", "dead-letters", "packs", "route-publish", "endpoint", "audit", "audit-entry"):
        visit.open(world.paths[name])
        assert SENTENCE in visit.page.locator(".read-only").inner_text()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400, name
        found += findings(visit)
    visit.open("/admin/users/")
    assert visit.page.locator(".read-only").is_visible()
    assert (visit.complaints, found + findings(visit)) == ([], [])


def test_a_form_that_was_open_before_is_refused_in_a_sentence(server: str, context: BrowserContext, settings: Settings) -> None:
    world = console_world.build()
    visit = log_in(server, context, "administrator")
    visit.open(world.paths["generation"])
    visit.page.fill("form.act input[name=reason]", "because")
    settings.HEADRACE_CONSOLE_READ_ONLY = True
    visit.page.locator("form.act button").first.click()
    visit.page.wait_for_selector("h1:has-text('Nothing was changed')")
    assert SENTENCE in visit.page.locator("main").inner_text()
