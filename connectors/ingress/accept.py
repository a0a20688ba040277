"""Accept: the first of a delivery's four steps. Its endpoint takes deliveries, and its limits are not reached; no byte is read yet."""

from __future__ import annotations

from types import TracebackType
from typing import Final

from django.db import Error, connections

from connectors.delivery import Outcome
from connectors.ingress import limits
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.outage import DATABASE_UNAVAILABLE, INGRESS
from connectors.ingress.spool import last_known
from connectors.pack import Pack
from projection.logs import log_event
from projection.safe_text import error_text

DISABLED_RETRY_SECONDS: Final = 60
NOT_FOUND: Final = Outcome("not_found", 404, message="There is no such endpoint.")
DISABLED: Final = Outcome(
    "disabled",
    503,
    message="This endpoint is disabled; please send the delivery again later.",
    retry_after=DISABLED_RETRY_SECONDS,
)
BROKEN: Final = Outcome(
    "endpoint_unavailable",
    503,
    message="This endpoint is not ready; please send the delivery again later.",
    retry_after=DISABLED_RETRY_SECONDS,
)
DISCARDING: Final = Outcome("gone", 410, message="This endpoint no longer accepts deliveries.")


class accept:
    """Around a whole delivery: its endpoint and pack, or the refusal. Its place among the endpoint's requests is held until the end."""

    def __init__(self, namespace: str, slug: str) -> None:
        self._name = (namespace, slug)
        self._placed: EndpointFacts | None = None

    def __enter__(self) -> tuple[EndpointFacts, Pack] | Outcome:
        found = _open_endpoint(self._name)
        if isinstance(found, Outcome):
            return found
        endpoint, _ = found
        if not limits.take_place(endpoint):
            return limits.TOO_MANY_AT_ONCE
        self._placed = endpoint
        return limits.exhausted(endpoint) or found

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._placed is not None:
            limits.give_place_back(self._placed)


def _open_endpoint(name: tuple[str, str]) -> tuple[EndpointFacts, Pack] | Outcome:
    try:
        endpoint = last_known.find(name)
    except Error as error:
        log_event("receive", level="error", endpoint=name[1], state="database_unavailable", error=error_text(error))
        connections[INGRESS].close()
        return DATABASE_UNAVAILABLE
    if endpoint is None:
        return NOT_FOUND
    if endpoint.pack is None or endpoint.availability == "broken":
        return BROKEN
    if endpoint.availability == "open":
        return endpoint, endpoint.pack
    return DISCARDING if endpoint.availability == "discarding" else DISABLED
