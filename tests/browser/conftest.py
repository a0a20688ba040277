"""A real Chromium against a real server: the service in a thread, its static files from where they are written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.test.testcases import LiveServerThread
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.support import console_world

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module (while it runs, its event loop makes Django refuse plain database calls in this thread unless told
    otherwise; other modules are not to notice). Tests are skipped where none is installed."""
    found = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def server(database: None) -> Iterator[str]:
    """The address of the service, running in a thread of this process on the suite's database."""
    thread = LiveServerThread("127.0.0.1", StaticFilesHandler)
    thread.daemon = True
    thread.start()
    thread.is_ready.wait()
    assert thread.error is None, thread.error
    yield f"http://127.0.0.1:{thread.port}"
    thread.terminate()


@dataclass
class Visit:
    """A page of a logged-in person, and everything that the browser complained about."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go there; the answer must be a page."""
        response = self.page.goto(f"{self.address}{path}", wait_until="load")
        assert response is not None
        assert response.status == 200, path

    def heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{self.page.url}: {message.text}")


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture
def visit(server: str, context: BrowserContext) -> Visit:
    """An operator's browser, logged in through the login page."""
    return log_in(server, context, "operator")


def log_in(server: str, context: BrowserContext, group: str) -> Visit:
    console_world.user(group)
    page = context.new_page()
    visit = Visit(page, server)
    page.on("console", visit.heard)
    page.on("pageerror", lambda error: visit.complaints.append(f"{page.url}: {error}"))
    visit.open("/admin/login/?next=/admin/")
    page.fill("input[name=username]", group)
    page.fill("input[name=password]", console_world.PASSWORD)
    page.click("input[type=submit]")
    page.wait_for_url("**/admin/")
    return visit
