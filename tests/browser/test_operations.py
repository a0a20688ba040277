"""Dead letters by mouse and keyboard: from the heat table to a choice, its preview, its job and what became of each item."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from connectors.models import AuditEntry
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind, JobState
from projection.models import WorkItem
from projection.states import State
from tests.browser.conftest import Visit
from tests.browser.test_actions import two_dead_letters
from tests.browser.test_pages import findings
from tests.support import console_world, rows
from tests.support.jobs_by_hand import fixed, run, run_with_workers, start

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]


def many_dead(count: int) -> None:
    for number in range(count):
        item = rows.work_row(rows.event_row(rows.PAGES, source_id=str(number)), State.DEAD, last_error=f"Error {number % 2}")
        WorkItem.objects.filter(id=item.id).update(error_fingerprint=str(number % 2) * 64)


def test_ticked_dead_letters_go_from_preview_to_result(visit: Visit) -> None:
    first, second = two_dead_letters()
    visit.open("/admin/dead-letters/")
    chosen = visit.page.get_by_role("button", name="Replay selected…")
    expect(chosen).to_be_disabled()
    visit.page.check("text=All on this page")
    expect(visit.page.locator("[data-chosen-count]")).to_have_text("(2 selected)")
    chosen.click()
    expect(visit.page.get_by_role("heading", name="Replay dead letters")).to_be_visible()
    expect(visit.page.locator(".outcome-good .outcome-count")).to_have_text("2")
    assert findings(visit) == []
    visit.page.get_by_role("button", name="Replay 2").click()
    assert jobs.newest(1) == []  # the browser asks for the reason first
    visit.page.fill("input[name=reason]", "the accounts exist now")
    visit.page.get_by_role("button", name="Replay 2").click()
    visit.page.wait_for_url("**/admin/replays/*/")
    expect(visit.page.locator(".progress-big")).to_contain_text("2 of 2: 2 replayed")
    expect(visit.page.locator(".badge-done")).to_have_count(2)
    assert findings(visit) == []
    assert set(WorkItem.objects.exclude(replay_of_work_id=None).values_list("replay_of_work_id", flat=True)) == {first, second}
    assert AuditEntry.objects.get(action="job.start").reason == "the accounts exist now"
    assert visit.complaints == []


def test_a_range_is_ticked_with_the_shift_key(visit: Visit) -> None:
    many_dead(6)
    visit.open("/admin/dead-letters/")
    boxes = visit.page.locator('input[name="work"]')
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(visit.page.locator("[data-chosen-count]")).to_have_text("(4 selected)")
    assert visit.page.evaluate("document.querySelector('[data-choose-all]').indeterminate")
    visit.open("/admin/receipts/")
    visit.page.go_back()
    ticked = visit.page.locator('input[name="work"]:checked').count()
    expect(visit.page.locator("[data-chosen-count]")).to_have_text(f"({ticked} selected)" if ticked else "")
    assert visit.complaints == []


def test_a_cell_of_the_heat_table_filters_the_list_and_all_of_it_is_discarded(visit: Visit) -> None:
    many_dead(6)
    visit.open("/admin/dead-letters/")
    visit.page.locator(".heat-table td a").first.click()
    expect(visit.page.locator(".heat-table td.chosen")).to_have_count(1)
    expect(visit.page.locator('input[name="work"]')).to_have_count(3)
    assert findings(visit) == []
    visit.page.get_by_role("button", name="Discard all…").click()
    expect(visit.page.locator(".outcome-good .outcome-count")).to_have_text("3")
    visit.page.fill("input[name=reason]", "test data")
    visit.page.get_by_role("button", name="Discard 3").click()
    visit.page.wait_for_url("**/admin/replays/*/")
    run(jobs.newest(1)[0])
    assert WorkItem.objects.exclude(discarded_at=None).count() == 3
    assert visit.complaints == []


def test_many_are_counted_while_somebody_looks(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.membership.PAGE", 2)
    many_dead(9)
    visit.open("/admin/dead-letters/")
    visit.page.get_by_role("button", name="Replay all…").click()
    expect(visit.page.get_by_role("button", name=re.compile("Replay 9"))).to_be_visible()
    expect(visit.page.locator("#outcome + .legend")).to_have_text("exact")
    assert visit.complaints == []


def test_a_running_job_moves_on_by_itself_until_it_is_paused(visit: Visit) -> None:
    many_dead(3)
    job = start(JobKind.DISCARD)
    console_world.worker("router")
    visit.page.clock.install()
    visit.open(f"/admin/replays/{job.id}/")
    assert findings(visit) == []
    expect(visit.page.locator(".progress-big")).to_contain_text("0 of 0: none yet")
    fixed(job)
    with visit.page.expect_response(lambda response: "/admin/replays/" in response.url):
        visit.page.clock.run_for(2_100)
    expect(visit.page.locator(".progress-big")).to_contain_text("3 waiting")
    visit.page.click("[data-live-switch]")
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.page.clock.run_for(10_000)
    assert asked == []
    visit.page.get_by_role("button", name="Pause", exact=True).click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Job paused.")
    visit.page.get_by_role("button", name="Resume").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Job resumed.")
    visit.page.click("[data-live-switch]")
    run_with_workers(job)
    visit.page.clock.run_for(2_100)
    expect(visit.page.get_by_role("button", name="Cancel job")).to_have_count(0)
    expect(visit.page.locator("h1 ~ .badge")).to_have_text("finished")
    asked.clear()
    visit.page.clock.run_for(10_000)
    assert asked == []
    assert visit.complaints == []


def test_a_job_is_cancelled_with_a_reason(visit: Visit) -> None:
    many_dead(1)
    job = start()
    visit.open(f"/admin/replays/{job.id}/")
    visit.page.get_by_role("button", name="Cancel job").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("enter a reason")
    visit.page.fill("input[name=reason]", "wrong filter")
    visit.page.get_by_role("button", name="Cancel job").click()
    expect(visit.page.locator(".messagelist")).to_contain_text("Job cancelled")
    found = jobs.find(job.id)
    assert found is not None
    assert found.state is JobState.CANCELLED


def test_bulk_forms_work_without_script(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projection.bulk.membership.PAGE", 2)
    many_dead(3)
    cookies = visit.page.context.cookies()
    browser = visit.page.context.browser
    assert browser is not None
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(f"{visit.address}/admin/dead-letters/")
    page.get_by_role("button", name="Replay all…").click()
    page.get_by_role("button", name="Continue counting").click()
    page.fill("input[name=reason]", "r")
    page.get_by_role("button", name="Replay 3").click()
    expect(page.get_by_role("heading", name=re.compile("Replay job"))).to_be_visible()
    context.close()
