"""Every page in a browser: no complaint of the console, no serious finding of axe, light and dark, wide and narrow."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Dialog

from tests.browser.conftest import Visit, log_in
from tests.support import console_world
from tests.support.console_world import HOSTILE, LISTS, World

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

SERIOUS = ("serious", "critical")


SHAPE: dict[str, Any] = {"rules": {"color-contrast": {"enabled": False}}}
COLOURS_HAVE_FADED = "Promise.all(document.getAnimations().filter(one => one instanceof CSSTransition).map(one => one.finished))"
CONTRAST: dict[str, Any] = {"runOnly": ["color-contrast"]}


def findings(visit: Visit, **options: Any) -> list[str]:
    """Serious and critical findings of axe on the page that is open."""
    # Without "preload" axe fetches nothing by itself (it would add inline styles for imported sheets, which our policy refuses).
    options = {"preload": False, "resultTypes": ["violations"], **options}
    violations = Axe().run(visit.page, options=options).response["violations"]
    return [
        f"{visit.page.url}: {one['id']}: {node['html'][:160]} {node.get('failureSummary', '')}"
        for one in violations
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


def test_every_page_is_accessible_and_quiet_light_and_dark(visit: Visit) -> None:
    world = console_world.build()
    found: list[str] = []
    for path in world.paths.values():
        visit.page.emulate_media(color_scheme="light")
        visit.open(path)
        found += findings(visit)
        visit.page.emulate_media(color_scheme="dark")
        visit.page.evaluate(COLOURS_HAVE_FADED)
        found += [f"dark: {one}" for one in findings(visit, **CONTRAST)]
    assert found == []
    assert visit.complaints == []


@pytest.mark.parametrize("group", ["viewer", "administrator"])
def test_every_page_is_accessible_and_quiet_for_whoever_may_see_it(server: str, context: BrowserContext, group: str) -> None:
    """Each role is offered other forms, in the same colours; the operator's are above."""
    world = console_world.build()
    visit = log_in(server, context, group)
    found: list[str] = []
    for path in world.paths.values():
        visit.open(path)
        found += findings(visit, **SHAPE)
    assert found == []
    assert visit.complaints == []


def test_every_page_fits_a_phone(visit: Visit) -> None:
    world = console_world.build("a-rather-long-word-" * 6)
    visit.page.set_viewport_size({"width": 400, "height": 800})
    for path in world.paths.values():
        visit.open(path)
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400, (path, width)


def test_a_cell_of_several_pieces_flows_as_one_on_a_phone(visit: Visit) -> None:
    world = console_world.build()
    visit.page.set_viewport_size({"width": 400, "height": 800})
    visit.open(world.paths["receipt"])
    box = visit.page.locator("td[data-label=Source]").first.bounding_box()
    assert box
    assert box["height"] < 30  # "contact", ":" and the id were a line each


def test_nothing_lies_beyond_the_edge_of_a_list_of_stops(visit: Visit) -> None:
    world = console_world.build()
    visit.page.set_viewport_size({"width": 1360, "height": 900})
    for name in ("destinations", "pauses"):
        visit.open(world.paths[name])
        hidden = visit.page.evaluate("[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)")
        assert hidden, name
        assert max(hidden) <= 0, name


def test_hostile_text_runs_nowhere(visit: Visit) -> None:
    world = console_world.build(HOSTILE)
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    visit.page.on("dialog", dismiss)
    for path in world.paths.values():
        visit.open(path)
    assert dialogs == []
    assert visit.complaints == []


def test_hostile_direction_stays_inside_its_own_text(visit: Visit) -> None:
    world = console_world.build(HOSTILE)
    visit.open(world.paths["receipt"])
    cell = visit.page.locator("#went").locator("xpath=ancestor::section").locator("td", has_text="gnp").first
    assert cell.locator(".control").first.get_attribute("data-code") == "U+202E"
    assert cell.evaluate("element => getComputedStyle(element.querySelector('.exact')).unicodeBidi") == "isolate"


def test_empty_pages_are_accessible_and_quiet(visit: Visit) -> None:
    paths = World(0, 0, 0, "", "", "", 0, 0).paths
    found: list[str] = []
    for name in ("overview", *LISTS):
        visit.open(paths[name])
        found += findings(visit)
    assert found == []
    assert visit.complaints == []


def test_djangos_own_pages_work_under_our_policy(server: str, context: BrowserContext) -> None:
    visit = log_in(server, context, "administrator")
    visit.open("/admin/password_change/")
    assert (visit.complaints, findings(visit)) == ([], [])
    visit.page.click("#logout-form button")
    visit.page.wait_for_url("**/logout/")
    assert visit.complaints == []


def test_the_theme_switch_changes_the_colours(visit: Visit) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    visit.page.emulate_media(color_scheme="light")
    visit.open("/admin/receipts/")
    light = visit.page.evaluate(colour)
    visit.page.click(".theme-toggle")
    assert visit.page.evaluate(colour) != light
    visit.open("/admin/events/")
    assert visit.page.evaluate(colour) != light


def test_long_ids_break_instead_of_widening_a_list(visit: Visit) -> None:
    world = console_world.build("9007199254740995" * 4)
    visit.page.set_viewport_size({"width": 1440, "height": 900})
    for name in ("receipts", "events", "generations", "dead-letters"):
        visit.open(world.paths[name])
        hidden = visit.page.evaluate("[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)")
        assert max(hidden) <= 0, name


def test_a_user_is_made_changed_and_deleted_on_a_phone(server: str, context: BrowserContext) -> None:
    visit = log_in(server, context, "administrator")
    page = visit.page
    page.set_viewport_size({"width": 400, "height": 800})

    def looked_at() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, page.url
        assert (visit.complaints, findings(visit)) == ([], [])

    def send(form_name: str, *, role: str = "", **texts: str) -> None:
        form = page.get_by_role("form", name=form_name)
        for label, text in texts.items():
            form.get_by_label(label).fill(text)
        if role:
            form.get_by_label("Role").select_option(role)
        form.get_by_role("button").click()

    visit.open("/admin/users/")
    looked_at()
    send("Create a user", Name="ada", role="operator", Reason="joins the team")
    page.wait_for_selector("h2:has-text('New password')")
    looked_at()
    send("Change role", role="viewer", Reason="changes the team")
    page.wait_for_selector("text=role: viewer")
    looked_at()
    send("Delete user", Reason="leaves")
    page.wait_for_selector("text=User ada deleted.")
