"""Pictures of each page of the console (`script/screenshots`): a day's worth of work with something wrong in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext
from pytest_django import Settings

from tests.browser.conftest import Visit, log_in
from tests.browser.showcase import show_case

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

SIZES = {"wide": (1440, 900), "narrow": (400, 860)}
CHOSEN = os.environ.get("SCREENSHOT_PAGES", "").split()


@pytest.fixture
def folder() -> Path:
    folder = Path(os.environ.get("SCREENSHOT_FOLDER", ".local/screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def looks(visit: Visit) -> Iterator[str]:
    """The page in each size and scheme; gives the end of a picture's name."""
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for size, (width, height) in SIZES.items():
            visit.page.set_viewport_size({"width": width, "height": height})
            yield f"{size}-{scheme}.png"


def try_a_route(visit: Visit, path: str) -> None:
    """The dry run of a change."""
    visit.open(path)
    visit.page.fill("#id_settle", "30s")
    visit.page.fill("#id_on", "contact.*")
    visit.page.click("text=Try on stored events")
    visit.page.wait_for_selector("#estimate")


def test_take_pictures(server: str, context: BrowserContext, folder: Path) -> None:
    visit = log_in(server, context, "administrator")
    world = show_case()
    paths = {**world.paths, "overview-day": "/admin/?flow=day"}
    for look in looks(visit):
        for name, path in paths.items():
            if name in (CHOSEN or paths):
                visit.open(path)
                visit.page.screenshot(path=folder / f"{name}-{look}", full_page=True)
        if not CHOSEN or "route-trial" in CHOSEN:
            try_a_route(visit, world.paths["route-publish"])
            visit.page.screenshot(path=folder / f"route-trial-{look}", full_page=True)
    assert visit.complaints == []


def test_take_pictures_of_an_empty_and_of_a_read_only_console(
    server: str, context: BrowserContext, folder: Path, settings: Settings
) -> None:
    visit = log_in(server, context, "administrator")
    for read_only, name in ((False, "empty"), (True, "read-only")):
        settings.HEADRACE_CONSOLE_READ_ONLY = read_only
        for look in looks(visit):
            if not CHOSEN or name in CHOSEN:
                visit.open("/admin/")
                visit.page.screenshot(path=folder / f"{name}-{look}", full_page=True)
    assert visit.complaints == []
