"""The console as the internet sees it: through gunicorn, behind a proxy that terminates TLS, on more than one host."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest

from ops_ui.console.login.logins import LIMITS
from tests.support import console_world
from tests.support.web import Web, serving

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("database")]

PUBLIC = {"HEADRACE_PUBLIC_URL": "https://hooks.example.com", "HEADRACE_ALLOWED_HOSTS": "console.example.com"}
BY_HTTPS = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "198.51.100.7"}
YEAR_SECONDS = 31_536_000
PATIENCE_SECONDS = 60.0


class Browser:
    """Keeps cookies, and speaks to the server as the proxy does for it."""

    def __init__(self, web: Web, headers: dict[str, str]) -> None:
        self._web = web
        self._headers = {"Host": "console.example.com", "Referer": "https://console.example.com/", **headers}
        self.cookies: SimpleCookie = SimpleCookie()

    def request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[http.client.HTTPResponse, str]:
        headers = self._headers | {"Cookie": "; ".join(f"{name}={one.value}" for name, one in self.cookies.items())}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(http.client.HTTPConnection("127.0.0.1", self._web.port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request(method, path, urlencode(form) if form else None, headers)
            response = connection.getresponse()
            text = response.read().decode()
        for line in response.headers.get_all("Set-Cookie", []):
            self.cookies.load(line)
        return response, text

    def log_in(self, password: str, name: str = "operator") -> http.client.HTTPResponse:
        _, page = self.request("GET", "/admin/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token is not None
        form = {"username": name, "password": password, "csrfmiddlewaretoken": token[1], "next": "/admin/"}
        return self.request("POST", "/admin/login/", form)[0]


@pytest.fixture(scope="module")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("web"), **PUBLIC) as made:
        yield made


def test_every_page_tells_the_browser_what_it_must_not_do(web: Web) -> None:
    response, _ = Browser(web, BY_HTTPS).request("GET", "/admin/login/")
    assert response.status == 200
    assert response.headers["Strict-Transport-Security"] == f"max-age={YEAR_SECONDS}"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["Referrer-Policy"] == "same-origin"
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response.headers["Permissions-Policy"] == "camera=(), geolocation=(), microphone=()"
    assert "default-src 'self'" in response.headers["Content-Security-Policy"]
    assert "no-store" in response.headers["Cache-Control"]


def test_cookies_travel_by_https_only_and_no_script_reads_them(web: Web) -> None:
    console_world.user("operator")
    browser = Browser(web, BY_HTTPS)
    assert browser.log_in(console_world.PASSWORD).status == 302
    assert set(browser.cookies) == {"csrftoken", "sessionid"}
    for cookie in browser.cookies.values():
        assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Lax")


def test_plain_http_is_sent_to_https_but_for_probes(web: Web) -> None:
    plain = Browser(web, {})
    response, _ = plain.request("GET", "/admin/login/")
    assert (response.status, response.headers["Location"]) == (301, "https://console.example.com/admin/login/")
    assert "Strict-Transport-Security" not in response.headers
    for probe in ("/healthz", "/readyz", "/metrics"):
        assert plain.request("GET", probe)[0].status != 301, probe


def test_deliveries_are_never_redirected(web: Web) -> None:
    """Providers do not follow a redirect with their body, and the proxy may speak to us as it likes."""
    assert Browser(web, {}).request("POST", "/ingress/default/none", {"a": "b"})[0].status == 404


def test_a_stranger_cannot_pretend_to_be_the_proxy(tmp_path: Path) -> None:
    with serving(tmp_path, **PUBLIC, HEADRACE_TRUSTED_PROXIES="192.0.2.1") as web:
        assert Browser(web, BY_HTTPS).request("GET", "/admin/login/")[0].status == 301


def test_two_hosts_count_failed_logins_together(tmp_path: Path) -> None:
    console_world.user("operator")
    console_world.user("viewer")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with serving(folders[0], **PUBLIC) as one, serving(folders[1], **PUBLIC) as two:
        for number in range(LIMITS["both"]):
            assert Browser((one, two)[number % 2], BY_HTTPS).log_in("a guess").status == 200
        for web in (one, two):
            refused = Browser(web, BY_HTTPS).log_in(console_world.PASSWORD)
            assert refused.status == 429
            assert 0 < int(refused.headers["Retry-After"]) <= 900
            assert Browser(web, BY_HTTPS).log_in(console_world.PASSWORD, "viewer").status == 302
            elsewhere = BY_HTTPS | {"X-Forwarded-For": "203.0.113.9"}
            assert Browser(web, elsewhere).log_in(console_world.PASSWORD).status == 302
