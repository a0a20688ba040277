"""Pictures of each page of the console (`script/screenshots`): a day's worth of work with something wrong in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser.conftest import Visit
from tests.browser.showcase import show_case

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

SIZES = {"wide": (1360, 860), "narrow": (400, 860)}


def test_take_pictures(visit: Visit) -> None:
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
    assert visit.complaints == []
