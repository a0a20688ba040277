"""The daily work by keys alone: pages, rows, ticks, help; and no key is taken from whoever writes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from connectors.models import AuditEntry
from projection.models import WorkItem
from tests.browser.conftest import Visit
from tests.browser.test_actions import two_dead_letters
from tests.browser.test_pages import findings
from tests.support import console_world

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_a_dead_letter_is_found_ticked_and_opened_by_keys(visit: Visit) -> None:
    two_dead_letters()
    press(visit.page, "g", "d")
    visit.page.wait_for_url("**/admin/dead-letters/")
    press(visit.page, "j", "j", "x")
    boxes = visit.page.locator('input[name="work"]')
    expect(visit.page.locator('input[name="work"]:checked')).to_have_count(1)
    expect(boxes.nth(1)).to_be_checked()
    expect(visit.page.locator("[data-chosen-count]")).to_have_text("(1 selected)")
    press(visit.page, "k", "x", "j", "x")
    expect(boxes.nth(0)).to_be_checked()
    expect(boxes.nth(1)).not_to_be_checked()
    boxes.nth(1).focus()
    press(visit.page, "/")  # a tick box is nothing to write in
    expect(visit.page.locator("[data-quick-trace]")).to_be_focused()
    press(visit.page, "Escape")
    expect(boxes.nth(1)).to_be_focused()
    press(visit.page, "k", "k", "Enter")  # the first row stays the first
    visit.page.wait_for_url("**/admin/dead-letters/csp*/")
    assert visit.complaints == []


def test_the_question_mark_shows_the_keys_and_escape_leads_back(visit: Visit) -> None:
    visit.open("/admin/receipts/")
    press(visit.page, "?")
    shown = visit.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shown).to_be_visible()
    expect(shown).to_contain_text("go to Dead letters")
    assert findings(visit) == []
    press(visit.page, "g", "d", "/", "j")  # the list is in front: nothing behind it moves
    press(visit.page, "Escape")
    expect(shown).to_be_hidden()
    assert visit.page.url.endswith("/admin/receipts/")
    assert visit.complaints == []


def test_no_key_is_taken_from_whoever_writes(visit: Visit) -> None:
    console_world.build()
    visit.open("/admin/lanes/")
    press(visit.page, "/")
    box = visit.page.locator("[data-quick-trace]")
    expect(box).to_be_focused()
    visit.page.keyboard.type("gdjkx?/")
    expect(box).to_have_value("gdjkx?/")
    press(visit.page, "Escape")
    expect(box).not_to_be_focused()
    visit.open("/admin/receipts/")
    choice = visit.page.locator("main select").first
    choice.focus()
    press(visit.page, "g", "d")
    expect(choice).to_be_focused()
    assert visit.page.url.endswith("/admin/receipts/")


def test_keys_of_the_browser_stay_the_browsers(visit: Visit) -> None:
    two_dead_letters()
    visit.open("/admin/dead-letters/")
    for key in ("Control+j", "Alt+x", "Meta+k", "J", "q"):
        press(visit.page, key)
    expect(visit.page.locator("tbody tr:focus-within")).to_have_count(0)
    press(visit.page, "g", "q", "d")  # an unknown page ends the sequence
    expect(visit.page).to_have_url(f"{visit.address}/admin/dead-letters/")


def test_no_key_changes_what_is_stored(visit: Visit) -> None:
    two_dead_letters()
    visit.open("/admin/dead-letters/")
    visit.page.check("text=All on this page")
    sent: list[str] = []
    visit.page.on("request", lambda request: sent.append(request.method))
    press(visit.page, *"abcdefhijklmnopqrstuvwxyz0123456789.,;:-_")
    press(visit.page, "Escape")
    assert "POST" not in sent
    assert not WorkItem.objects.exclude(discarded_at=None).exists()
    assert not AuditEntry.objects.filter(action__startswith="work.").exists()


def test_keys_are_turned_off_on_their_page(visit: Visit) -> None:
    visit.open("/admin/help/keys/")
    switch = visit.page.get_by_role("button", name="Shortcuts are on")
    switch.click()
    expect(visit.page.get_by_role("button", name="Shortcuts are off")).to_be_visible()
    visit.page.locator("main").focus()
    press(visit.page, "?", "/", "g", "d")
    expect(visit.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    expect(visit.page.locator("[data-quick-trace]")).not_to_be_focused()
    assert visit.page.url.endswith("/admin/help/keys/")
    visit.page.get_by_role("button", name="Shortcuts are off").click()
    visit.page.locator("main").focus()
    press(visit.page, "?")
    expect(visit.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_a_question_mark_beside_a_heading_leads_to_its_word(visit: Visit) -> None:
    visit.open("/admin/lanes/")
    mark = visit.page.get_by_role("link", name="What is: Lane")
    assert "One item of a lane runs at a time" in str(mark.get_attribute("title"))
    mark.click()
    visit.page.wait_for_url("**/admin/help/words/#lane")
    expect(visit.page.locator("#lane")).to_be_in_viewport()
    assert findings(visit) == []
    assert visit.complaints == []
