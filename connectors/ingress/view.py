"""The ingress over HTTP: `POST /ingress/<namespace>/<endpoint slug>`. The only page without CSRF check, sessions and host check.

Answers (docs/ingress.md): 202 stored · 200 duplicate · 401 · 404 · 409 · 413 · 429 · 503, JSON with a stable `code` and a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import quote

from django.db import Error, connections
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from connectors.delivery import Answer, IngressRequest, Outcome, WsgiHeaders
from connectors.ingress import body_memory, limits, metrics
from connectors.ingress.body import drain, read_body
from connectors.ingress.body_memory import Hold
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.outage import INGRESS
from connectors.ingress.receive import DATABASE_UNAVAILABLE, receive
from connectors.ingress.spool import last_known
from connectors.ingress.spool.spooling import FULL, SPOOLED
from connectors.pack import Pack
from projection.foreign_code import FAILURES
from projection.logs import log_event
from projection.safe_text import error_text

T = TypeVar("T")

DISABLED_RETRY_SECONDS: Final = 60
NOT_FOUND: Final = Outcome("not_found", 404, message="There is no such endpoint.")
METHOD_NOT_ALLOWED: Final = Outcome("method_not_allowed", 405, message="Deliveries are sent with POST.")
DISABLED: Final = Outcome(
    "disabled",
    503,
    message="This endpoint takes no deliveries at present; please send it later.",
    retry_after=DISABLED_RETRY_SECONDS,
)
BROKEN: Final = Outcome(
    "endpoint_unavailable", 503, message="This endpoint is not ready; please send it later.", retry_after=DISABLED_RETRY_SECONDS
)
DISCARDING: Final = Outcome("gone", 410, message="This endpoint takes no deliveries any more.")
UNEXPECTED: Final = Outcome("internal_error", 503, message="The delivery was not stored; please send it again.", retry_after=10)
STORED: Final = frozenset({"accepted", "duplicate", "conflict", SPOOLED})
LOGGED: Final = STORED | {"unverified", "internal_error", DATABASE_UNAVAILABLE.code, FULL.code}
"""What has a line of ours in the log, with the reason: Django need not add its own, which is the only one of all other refusals."""


@csrf_exempt
def ingress(request: HttpRequest, namespace: str, slug: str) -> HttpResponse:
    """One delivery, or a provider's challenge. Always an answer of ours, never an error page."""
    try:
        return _answered(request, namespace, slug)
    except FAILURES as error:  # the last resort: a provider must not read 2xx or an HTML page for a fault of ours
        log_event("receive", level="error", namespace=namespace, endpoint=slug, state="internal_error", error=error_text(error))
        return _refused(request, UNEXPECTED)


def _answered(request: HttpRequest, namespace: str, slug: str) -> HttpResponse:
    found = _endpoint(namespace, slug)
    if isinstance(found, Outcome):
        return _refused(request, found)
    endpoint, pack = found
    with limits.place(endpoint) as free:
        return _asked_to_take(request, endpoint, pack) if free else _refused(request, limits.TOO_MANY_AT_ONCE)


def _asked_to_take(request: HttpRequest, endpoint: EndpointFacts, pack: Pack) -> HttpResponse:
    refused = limits.exhausted(endpoint)
    if refused is not None:
        return _refused(request, refused)
    with body_memory.room.hold() as hold:
        return _taken(request, endpoint, pack, hold)


def _taken(request: HttpRequest, endpoint: EndpointFacts, pack: Pack, hold: Hold) -> HttpResponse:
    body: bytes | Outcome = b""
    if request.method == "POST":
        body = read_body(request.META, endpoint.max_body_bytes, hold)
    if isinstance(body, Outcome):
        return _refused(request, body)
    delivery = IngressRequest(request.method or "", public_url(endpoint, request), WsgiHeaders(request.META), body)
    challenge = _asked(pack.handshake, delivery, endpoint)
    if challenge is not None:
        return _pack_answer(challenge)
    if request.method != "POST":
        return _refused(request, METHOD_NOT_ALLOWED)
    outcome = receive(endpoint, delivery, using=INGRESS)
    answer = _asked(pack.acknowledge, outcome, endpoint) if outcome.code in STORED else None
    return _json(outcome) if answer is None else _logged_once(_pack_answer(answer))


def _endpoint(namespace: str, slug: str) -> tuple[EndpointFacts, Pack] | Outcome:
    try:
        endpoint = last_known.find((namespace, slug))
    except Error as error:
        log_event("receive", level="error", endpoint=slug, state="database_unavailable", error=error_text(error))
        connections[INGRESS].close()
        return DATABASE_UNAVAILABLE
    if endpoint is None:
        return NOT_FOUND
    if endpoint.pack is None or endpoint.availability == "broken":
        return BROKEN
    if endpoint.availability == "open":
        return endpoint, endpoint.pack
    return DISCARDING if endpoint.availability == "discarding" else DISABLED


def public_url(endpoint: EndpointFacts, request: HttpRequest) -> str:
    """The URL that the provider called: the configured scheme and host (else the request's own), path and query as they were sent."""
    base = endpoint.public_url or f"{request.scheme}://{request.META.get('HTTP_HOST', 'localhost')}"
    raw = request.META.get("RAW_URI", "")
    if raw.startswith("/"):
        return base + str(raw)
    query = request.META.get("QUERY_STRING", "")
    return base + quote(request.path) + (f"?{query}" if query else "")


def _asked(question: Callable[[T], Answer | None], about: T, endpoint: EndpointFacts) -> Answer | None:
    """A pack's own answer; None when it has none, or its code fails (the delivery goes on without it)."""
    try:
        return question(about)
    except FAILURES as error:  # a pack may be foreign code, and the delivery is worth more than its answer
        log_event("pack_failed", level="error", endpoint=endpoint.slug, pack=endpoint.pack_name, error=error_text(error))
        return None


class _Refusal(HttpResponse):
    """An answer given before the body was read: what the sender still writes is dropped once the answer is out."""

    def __init__(self, request: HttpRequest, content: bytes, status: int) -> None:
        super().__init__(content, content_type="application/json", status=status)
        self._environ = request.META

    def close(self) -> None:
        super().close()
        drain(self._environ)


def _refused(request: HttpRequest, outcome: Outcome) -> HttpResponse:
    metrics.count(outcome.code)
    response = _Refusal(request, _text(outcome), outcome.status)
    if outcome.status == 405:
        response.headers["Allow"] = "POST"
    return _with_headers(response, outcome)


def _json(outcome: Outcome) -> HttpResponse:
    return _with_headers(HttpResponse(_text(outcome), content_type="application/json", status=outcome.status), outcome)


def _text(outcome: Outcome) -> bytes:
    if outcome.code == SPOOLED:  # it has no receipt yet
        return json.dumps({"receipt": None, "duplicate": False, "spooled": True}).encode()
    if outcome.status < 400:
        return json.dumps({"receipt": str(outcome.receipt_id), "duplicate": outcome.code == "duplicate"}).encode()
    members = {"code": outcome.code, "message": outcome.message}
    return json.dumps(members if outcome.receipt_id is None else members | {"receipt": str(outcome.receipt_id)}).encode()


def _with_headers(response: HttpResponse, outcome: Outcome) -> HttpResponse:
    if outcome.retry_after is not None:
        response.headers["Retry-After"] = str(outcome.retry_after)
    return _plain(_logged_once(response) if outcome.code in LOGGED else response)


def _logged_once(response: HttpResponse) -> HttpResponse:
    response._has_been_logged = True  # type: ignore[attr-defined]  # what django.utils.log.log_response looks at
    return response


def _pack_answer(answer: Answer) -> HttpResponse:
    return _plain(HttpResponse(answer.body, content_type=answer.content_type, status=answer.status, headers=dict(answer.headers)))


def _plain(response: HttpResponse) -> HttpResponse:
    # An answer may repeat what a stranger sent (a challenge): no browser may take it for anything but what it says it is.
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-store"
    # Set here because Django's own middleware, which would, does not see the ingress: senders know where the answer ends.
    response.headers["Content-Length"] = str(len(response.content))
    return response
