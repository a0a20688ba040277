"""The ingress answers before the console's middleware: no host check, session, CSRF check or redirect applies to deliveries."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from connectors.ingress.paths import PREFIX
from connectors.ingress.view import ingress


class IngressFirst:
    """Answers `/ingress/…` itself. Providers call under names that ALLOWED_HOSTS need not list, and nothing may touch the body."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        try:
            found = _names(request.path_info)
        except Resolver404:
            return ingress(request, namespace="", slug="")
        return ingress(request, **found)


@lru_cache(maxsize=256)
def _names(path: str) -> dict[str, str]:
    """Namespace and slug of an endpoint's path, remembered: a provider calls the same one all the time. Raises Resolver404."""
    return dict(resolve(path, "connectors.urls").kwargs)
