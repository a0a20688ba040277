"""Pictures of each page of the console (`script/screenshots`): a day's worth of work with something wrong in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import Visit, log_in
from tests.browser.showcase import show_case

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

SIZES = {"wide": (1360, 860), "narrow": (400, 860)}


def try_a_route(visit: Visit, path: str) -> None:
    """The dry run of a change."""
    visit.open(path)
    visit.page.fill("#id_settle", "30s")
    visit.page.fill("#id_on", "contact.*")
    visit.page.click("text=Try it on stored events")
    visit.page.wait_for_selector("#estimate")


def test_take_pictures(server: str, context: BrowserContext) -> None:
    visit = log_in(server, context, "administrator")
    folder = Path(os.environ.get("SCREENSHOT_FOLDER", ".local/screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    world = show_case()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        for size, (width, height) in SIZES.items():
            visit.page.set_viewport_size({"width": width, "height": height})
            for name, path in world.paths.items():
                visit.open(path)
                visit.page.screenshot(path=folder / f"{name}-{size}-{scheme}.png", full_page=size == "wide")
            try_a_route(visit, world.paths["route-publish"])
            visit.page.screenshot(path=folder / f"route-trial-{size}-{scheme}.png", full_page=size == "wide")
    assert visit.complaints == []
