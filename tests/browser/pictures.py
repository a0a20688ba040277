"""The pictures of README.md (`script/pictures`): the tops of four pages, as WebP."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import log_in
from tests.browser.showcase import show_case

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]

WIDTH = 1360
LARGEST_BYTES = 150_000


@dataclass(frozen=True)
class Picture:
    """Of the page, by its name in `World.paths`: the first so many pixels of its height."""

    page: str
    scheme: Literal["light", "dark"]
    height: int


PICTURES = (
    Picture("overview", "light", 1000),
    Picture("dead-letters", "dark", 800),
    Picture("trace-found", "light", 830),
    Picture("source", "dark", 720),
)


def test_take_the_pictures_of_the_readme(server: str, context: BrowserContext) -> None:
    visit = log_in(server, context, "administrator")
    folder = Path(os.environ.get("PICTURE_FOLDER", "docs/pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    world = show_case()
    # Playwright itself writes PNG and JPEG only; WebP is a third of that, without blurred letters.
    browser = context.new_cdp_session(visit.page)
    for picture in PICTURES:
        visit.page.emulate_media(color_scheme=picture.scheme)
        visit.page.set_viewport_size({"width": WIDTH, "height": picture.height})
        visit.open(world.paths[picture.page])
        taken = browser.send("Page.captureScreenshot", {"format": "webp", "quality": 82})
        content = base64.b64decode(taken["data"])
        assert len(content) <= LARGEST_BYTES, picture.page
        (folder / f"{picture.page}-{picture.scheme}.webp").write_bytes(content)
    assert visit.complaints == []
