"""The admin site: Django's own, with the pages of the console in front of its model pages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, register_converter

from ops_ui.console.base.glossary import KEYS
from ops_ui.console.base.navigation import OVERVIEW, sections


class AsciiConverter:
    """A key in a URL: ASCII, like the columns that it is compared with; anything else is no page."""

    regex = "[!-.0-~]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(AsciiConverter, "ascii")

Urls = list[URLPattern | URLResolver]


class ConsoleSite(AdminSite):
    """`admin.site`: pages at `/admin/<page>/`, named `admin:<page>`; the index is the overview."""

    site_header = "Headrace"
    site_title = "Headrace"
    site_url = None
    enable_nav_sidebar = False

    def get_urls(self) -> Urls:
        # Views import models; this module is imported while the apps load.
        from ops_ui.console.audit import views as audit
        from ops_ui.console.dead_letters import views as dead_letters
        from ops_ui.console.events import views as events
        from ops_ui.console.generations import comparisons
        from ops_ui.console.generations import views as generations
        from ops_ui.console.help import views as help
        from ops_ui.console.jobs import bulk
        from ops_ui.console.jobs import views as jobs
        from ops_ui.console.lanes import views as lanes
        from ops_ui.console.payloads import reveals
        from ops_ui.console.receipts import views as receipts
        from ops_ui.console.service import destinations, stops, workers
        from ops_ui.console.setup import connections, endpoint_actions, endpoints, packs, routes
        from ops_ui.console.sources import records
        from ops_ui.console.sources import views as sources
        from ops_ui.console.trace import views as trace
        from ops_ui.console.users import views as users

        # A verb before a key: `bulk`, `stops` and `reveals` have addresses that a page's key would match.
        flow = (
            bulk,
            stops,
            reveals,
            trace,
            comparisons,
            receipts,
            events,
            generations,
            lanes,
            dead_letters,
            jobs,
            sources,
            records,
        )
        setup = (endpoint_actions, endpoints, packs, routes, connections)
        pages = [one for page in (*flow, *setup, destinations, workers, audit, users, help) for one in page.URLS]
        return [*(path(url, self.admin_view(view), name=name) for url, view, name in pages), *super().get_urls()]

    # The override answers with its own page instead of a TemplateResponse, and has no use for another context.
    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # as said above  # noqa: ARG002  # nobody passes one
        """The overview; nobody passes another context."""
        from ops_ui.console.overview.views import overview

        return overview(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The admin's own page with the throttled form; 429 with Retry-After where it let no password be looked at."""
        from ops_ui.console.login.logins import ConsoleLoginForm

        self.login_form = ConsoleLoginForm
        response = super().login(request, extra_context)
        form = (response.context_data or {}).get("form") if isinstance(response, TemplateResponse) else None
        if isinstance(form, ConsoleLoginForm) and form.wait_seconds is not None:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response.headers["Retry-After"] = str(form.wait_seconds)
        return response

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """The context of every admin page, with the pages that this user may open."""
        current = getattr(request, "here", None) or (OVERVIEW if request.path_info.endswith("/admin/") else None)
        return {**super().each_context(request), "sections": sections(request.user), "here": current, "keys": KEYS}
