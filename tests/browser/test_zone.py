"""Times in the zone of the browser, from the first page on, and UTC for whoever chooses it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page, expect

from connectors.models import AuditEntry
from tests.browser.conftest import Visit, log_in
from tests.browser.test_pages import findings

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

AUDIT = "/admin/audit/"


@pytest.fixture
def in_madrid(server: str, chromium: Browser) -> Iterator[Visit]:
    context = chromium.new_context(timezone_id="Europe/Madrid", viewport={"width": 1280, "height": 900})
    yield log_in(server, context, "administrator")
    context.close()


def an_entry() -> None:
    AuditEntry.objects.create(
        at=datetime(2026, 7, 1, 10, 0, tzinfo=UTC), actor="ada", action="lane.hold", target="contact:1", reason="r"
    )


def time_shown(page: Page) -> str:
    return page.locator("main td time").first.inner_text()


def test_the_first_page_after_the_login_is_in_the_zone_of_the_browser(in_madrid: Visit) -> None:
    an_entry()
    in_madrid.open(AUDIT)
    assert time_shown(in_madrid.page) == "2026-07-01 12:00:00"
    assert in_madrid.page.locator("main td time").first.get_attribute("title") == "2026-07-01 10:00:00.000000 UTC"
    expect(in_madrid.page.get_by_role("columnheader", name="When (Madrid)")).to_be_visible()
    assert findings(in_madrid) == []


def test_utc_is_chosen_in_sight_and_stays(in_madrid: Visit) -> None:
    an_entry()
    in_madrid.open(AUDIT)
    switch = in_madrid.page.locator("[data-zone-switch]")
    expect(switch).to_have_text("Times: Madrid")
    switch.click()
    expect(switch).to_have_text("Times: UTC")
    assert time_shown(in_madrid.page) == "2026-07-01 10:00:00"
    in_madrid.open("/admin/")
    in_madrid.open(AUDIT)
    expect(switch).to_have_text("Times: UTC")
    switch.click()
    expect(switch).to_have_text("Times: Madrid")
    assert in_madrid.complaints == []


def test_a_traveller_takes_the_zone_along(in_madrid: Visit, chromium: Browser) -> None:
    an_entry()
    cookies = in_madrid.page.context.cookies()
    there = chromium.new_context(timezone_id="Asia/Tokyo")
    there.add_cookies(cookies)
    page = there.new_page()
    page.goto(f"{in_madrid.address}{AUDIT}")  # this one still comes in the zone of the cookie
    page.goto(f"{in_madrid.address}{AUDIT}")
    assert time_shown(page) == "2026-07-01 19:00:00"
    there.close()


def test_a_browser_in_utc_has_no_choice_to_make(server: str, chromium: Browser) -> None:
    context = chromium.new_context(timezone_id="Etc/UTC")
    visit = log_in(server, context, "operator")
    expect(visit.page.locator("[data-zone-switch]")).to_be_hidden()
    context.close()


def test_without_script_times_are_utc(in_madrid: Visit, chromium: Browser) -> None:
    an_entry()
    session = [one for one in in_madrid.page.context.cookies() if one.get("name") == "sessionid"]
    context = chromium.new_context(java_script_enabled=False, timezone_id="Europe/Madrid")
    context.add_cookies(session)
    page = context.new_page()
    page.goto(f"{in_madrid.address}{AUDIT}")
    assert time_shown(page) == "2026-07-01 10:00:00"
    expect(page.locator("[data-zone-switch]")).to_be_hidden()
    context.close()
