"""The ingress answers before the console's middleware: no host check, session, CSRF check or redirect applies to deliveries."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from connectors.ingress_path import PREFIX
from connectors.views import ingress


class IngressFirst:
    """Answers `/ingress/…` itself. Providers call under names that ALLOWED_HOSTS need not list, and nothing may touch the body."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        try:
            found = resolve(request.path_info, "connectors.urls")
        except Resolver404:
            return ingress(request, namespace="", slug="")
        return ingress(request, **found.kwargs)
