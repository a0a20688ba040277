"""The console as a window: with HEADRACE_CONSOLE_READ_ONLY it shows everything that a person may see, and changes nothing.

Refused is every method that could change something, at every address of the console, Django's own pages included; not offered is what
needs any other right than to view. Logging in and out stays, and so do exports, which the audit trail is told of. Workers, the ingress
and commands go on.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
ALLOWED: Final = frozenset({"login", "logout"})
"""Names of addresses that may be posted to."""
CHANGES_ONLY: Final = frozenset({"password_change"})
"""Names of pages that are nothing but a form, for which no right is asked."""
VIEWING: Final = "view_"
"""How the name of a right begins that only shows something."""
SENTENCE: Final = (
    "HEADRACE_CONSOLE_READ_ONLY is set, so this console cannot change anything. "
    "Run script/manage on a Headrace host instead, or unset the variable and restart the web server."
)


def sentence() -> str:
    """Why nothing can be changed here, and what to do; empty: it can."""
    return SENTENCE if settings.HEADRACE_CONSOLE_READ_ONLY else ""


class ReadOnlyConsole:
    """Middleware. Comes after those that know the user and its session."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        """403 with the sentence for what could change something; otherwise the user has rights to view only."""
        address = request.resolver_match
        if not settings.HEADRACE_CONSOLE_READ_ONLY or address is None or "admin" not in address.app_names:
            return None
        if address.url_name in CHANGES_ONLY or (request.method not in SAFE and address.url_name not in ALLOWED):
            return render(request, "read_only.html", {"sentence": SENTENCE}, status=HTTPStatus.FORBIDDEN)
        _only_view(request.user)
        return None


def _only_view(user: Any) -> None:
    """For this request the user, a superuser too, has no right but those to view: whatever a page offers asks for its right first."""
    has_perm = user.has_perm

    def views(perm: str, obj: Any = None) -> bool:
        return perm.rpartition(".")[2].startswith(VIEWING) and has_perm(perm, obj)

    user.has_perm = views
