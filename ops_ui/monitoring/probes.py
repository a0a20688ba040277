"""Probes and metrics are answered under any host name, and without TLS: an orchestrator calls a container by its address, Prometheus
by a service name. What they show holds no secret and depends on no Host header.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from ops_ui.monitoring.health import healthz, progressz, readyz
from ops_ui.monitoring.metrics import metrics

PROBES: Final[dict[str, Callable[[HttpRequest], HttpResponse]]] = {
    "/healthz": healthz,
    "/readyz": readyz,
    "/progressz": progressz,
    "/metrics": metrics,
}


class ProbesFirst:
    """Middleware: answers `PROBES` before the host check and the redirect to HTTPS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return PROBES.get(request.path_info, self.get_response)(request)
