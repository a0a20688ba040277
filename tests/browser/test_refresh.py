"""Live refresh: what a person ticked, opened, marked or focused is still there, and only what changed is touched."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from projection.database.clock import now
from projection.models import WorkItem
from projection.states import State
from tests.browser.conftest import Visit
from tests.browser.test_actions import two_dead_letters
from tests.browser.test_pages import findings
from tests.support import factories, rows

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

OVERVIEW = "/admin/"
DEAD_LETTERS = "/admin/dead-letters/"


def refresh(page: Page) -> None:
    """Let the next refresh come, and wait until its answer is in the page."""
    page.evaluate("""
        delete document.documentElement.dataset.refreshed;
        document.addEventListener('headrace:refreshed', () => { document.documentElement.dataset.refreshed = 'yes'; }, {once: true});
    """)
    page.clock.run_for(10_100)
    expect(page.locator("html")).to_have_attribute("data-refreshed", "yes", timeout=15_000)


def open_live(visit: Visit, path: str) -> Page:
    visit.page.clock.install()
    visit.open(path)
    visit.page.mouse.move(0, 0)
    return visit.page


def another_dead_letter() -> WorkItem:
    return rows.work_row(rows.event_row(source_id="later"), State.DEAD, last_error="KeyError: 'later'", error_fingerprint="c" * 64)


def test_ticks_of_dead_letters_survive_what_comes_in_above_them(visit: Visit) -> None:
    first, _ = two_dead_letters()
    page = open_live(visit, DEAD_LETTERS)
    page.check(f'input[value="{first}"]')
    page.mouse.move(0, 0)
    another_dead_letter()
    refresh(page)
    expect(page.locator('input[name="work"]')).to_have_count(3)
    expect(page.locator('input[name="work"]:checked')).to_have_count(1)
    expect(page.locator(f'input[value="{first}"]')).to_be_checked()
    expect(page.locator("[data-chosen-count]")).to_have_text("(1 selected)")
    expect(page.get_by_role("button", name="Replay selected…")).to_be_enabled()
    expect(page.locator(f'input[value="{first}"]')).to_be_focused()
    assert findings(visit) == []
    assert visit.complaints == []


def test_a_dead_letter_that_somebody_else_discarded_takes_its_tick_along(visit: Visit) -> None:
    first, second = two_dead_letters()
    page = open_live(visit, DEAD_LETTERS)
    page.check("text=All on this page")
    WorkItem.objects.filter(work_id=second).update(discarded_at=now())
    refresh(page)
    expect(page.locator('input[name="work"]')).to_have_count(1)
    expect(page.locator(f'input[value="{first}"]')).to_be_checked()
    expect(page.locator("[data-chosen-count]")).to_have_text("(1 selected)")


def test_rows_do_not_move_under_the_pointer(visit: Visit) -> None:
    first, _ = two_dead_letters()
    page = open_live(visit, DEAD_LETTERS)
    page.hover(f'input[value="{first}"]')
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(30_000)
    assert asked == []
    page.mouse.move(0, 0)
    refresh(page)


def test_an_open_table_stays_open_and_its_numbers_move_on(visit: Visit) -> None:
    pack = factories.install()
    page = open_live(visit, OVERVIEW)
    page.click("text=Show as table")
    expect(page.locator("#flow-table")).to_have_attribute("open", "")
    factories.receipt(pack, "{}")
    refresh(page)
    expect(page.locator("#flow-table")).to_have_attribute("open", "")
    expect(page.locator("#flow-table td[data-label=Received]", has_text="1")).to_have_count(1)
    expect(page.locator(".card", has_text="Waiting for router").locator(".card-count")).to_have_text("1")


def test_only_what_changed_is_touched(visit: Visit) -> None:
    pack = factories.install()
    page = open_live(visit, OVERVIEW)
    page.evaluate("""
        window.touched = new Set();
        const note = (record) => {
          if (record.target.id === 'live' && record.type === 'attributes') return; // htmx: a request is under way
          const element = record.target.closest ? record.target : record.target.parentElement;
          const of = element.closest('section[id], ul.cards, #live');
          touched.add(of.id || of.getAttribute('class'));
        };
        new MutationObserver((records) => records.forEach(note))
          .observe(document.getElementById('live'), {subtree: true, childList: true, attributes: true, characterData: true});
        document.querySelector('.card a').focus();
    """)
    factories.receipt(pack, "{}")
    refresh(page)
    assert set(page.evaluate("[...touched]")) <= {"flow", "cards", "ages", "live"}
    expect(page.locator(".card a").first).to_be_focused()
    page.evaluate("touched.clear()")
    refresh(page)
    assert set(page.evaluate("[...touched]")) <= {"flow", "cards", "ages"}  # the clock, and the ages


def test_marked_text_stops_the_refresh(visit: Visit) -> None:
    page = open_live(visit, OVERVIEW)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#alive'))")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(20_000)
    assert asked == []


def test_after_the_session_is_over_a_refresh_leads_to_the_login(visit: Visit) -> None:
    page = open_live(visit, OVERVIEW)
    page.context.clear_cookies(name="sessionid")
    page.clock.run_for(10_100)
    page.wait_for_url("**/admin/login/?next=/admin/")
