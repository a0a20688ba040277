"""A stored text in a browser: folded, copied, searched, with hostile text in it, by keyboard and to assistive technology."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import BrowserContext

from projection.states import State
from tests.browser.conftest import log_in
from tests.browser.test_pages import findings
from tests.support import console_world, factories, rows

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

PAYLOAD = '{"id":1.0,"who":{"name":"Ada","tags":["a","b"]},"id":12345678901234567890,"x":' + json.dumps(console_world.HOSTILE) + "}"


def test_a_payload_is_folded_copied_and_searched(server: str, context: BrowserContext) -> None:
    visit = log_in(server, context, "administrator")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    facts = factories.route(factories.install(), "contact", mode="projection", masks=("$.mail",))
    event = rows.event_row(facts, payload=PAYLOAD[:-1] + ',"mail":"ada@example.com"}')
    visit.open(f"/admin/events/{event.id}/")
    page = visit.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))

    lines = page.locator(".lines .line")
    whole = lines.count()
    fold = page.get_by_role("button", name="Lines 4 to 8")
    fold.focus()
    page.keyboard.press("Enter")
    assert fold.get_attribute("aria-expanded") == "false"
    assert page.locator(".lines .line:visible").count() == whole - 5
    page.keyboard.press("Enter")
    assert page.locator(".lines .line:visible").count() == whole

    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_text("Copied", exact=True).wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == PAYLOAD[:-1] + ',"mail":•••}'

    page.get_by_label("Find in the text").fill("ID")
    page.keyboard.press("Enter")
    page.locator("#hit").wait_for()
    assert "Match 1 of 2" in page.locator(".payload-hits").inner_text()
    page.get_by_role("link", name="Next match").click()
    page.locator(".payload-hits", has_text="Match 2 of 2").wait_for()
    assert findings(visit) == []

    page.get_by_role("link", name="Raw").click()
    page.wait_for_url("**as=sent*")
    assert lines.count() == 1
    page.locator("summary", has_text="Reveal").click()
    page.get_by_label("Reason").fill("a customer asks")
    page.get_by_role("button", name="Show once").click()
    page.get_by_text("ada@example.com").wait_for()
    assert findings(visit) == []
    assert (visit.complaints, dialogs) == ([], [])


def test_two_generations_are_compared_from_a_generations_page(server: str, context: BrowserContext) -> None:
    visit = log_in(server, context, "viewer")
    facts = factories.route(factories.install(), "contact", mode="projection", masks=("$.mail",))
    for stage in ("lead", "customer"):
        item = rows.work_row(rows.event_row(facts, payload=json.dumps({"id": 1, "mail": "a@b", "stage": stage})), State.PROCESSED)
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        visit.open(f"/admin/generations/{item.work_id}/")
        assert findings(visit) == []
        visit.page.get_by_role("link", name="Compare with the previous generation").click()
        visit.page.locator("ins", has_text='"customer"').wait_for()
        assert visit.page.locator("del").inner_text().strip() == '"stage": "lead"'
        assert findings(visit) == []
    visit.page.set_viewport_size({"width": 400, "height": 800})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert visit.complaints == []
