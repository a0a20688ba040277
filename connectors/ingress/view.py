"""The ingress over HTTP: `POST /ingress/<namespace>/<endpoint slug>`. The only page without CSRF check, sessions and host check.

Four steps, each in the module of its name: accept the request, read its body, verify it, store it (`receive` does the last two, for
callers without HTTP too). Answers: `answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from connectors.delivery import Answer, IngressRequest, Outcome, WsgiHeaders
from connectors.ingress import answers, body_memory
from connectors.ingress.accept import accept
from connectors.ingress.body import read_body
from connectors.ingress.body_memory import Hold
from connectors.ingress.client_address import client_network
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.outage import INGRESS
from connectors.ingress.receive import receive
from connectors.pack import Pack
from projection.foreign_code import FAILURES
from projection.logs import log_event
from projection.safe_text import error_text

T = TypeVar("T")

METHOD_NOT_ALLOWED: Final = Outcome("method_not_allowed", 405, message="Deliveries are sent with POST.")
UNEXPECTED: Final = Outcome("internal_error", 503, message="The delivery was not stored; please send it again.", retry_after=10)


@csrf_exempt
def ingress(request: HttpRequest, namespace: str, slug: str) -> HttpResponse:
    """One delivery, or a provider's challenge. Always an answer of ours, never an error page."""
    try:
        return _answered(request, namespace, slug)
    except FAILURES as error:  # the last resort: a provider must not read 2xx or an HTML page for a fault of ours
        log_event("receive", level="error", namespace=namespace, endpoint=slug, state="internal_error", error=error_text(error))
        return answers.refused(request, UNEXPECTED)


def _answered(request: HttpRequest, namespace: str, slug: str) -> HttpResponse:
    """The four steps. The first two may end the delivery with a refusal; its place and memory are given back with the answer."""
    with accept(namespace, slug) as accepted, body_memory.room.hold() as hold:
        if isinstance(accepted, Outcome):
            return answers.refused(request, accepted)
        endpoint, pack = accepted
        delivery = _read_request(request, endpoint, hold)
        if isinstance(delivery, Outcome):
            return answers.refused(request, delivery)
        other = _not_a_delivery(request, endpoint, pack, delivery)
        if other is not None:
            return other
        return _acknowledged(endpoint, pack, receive(endpoint, delivery, using=INGRESS))


def _read_request(request: HttpRequest, endpoint: EndpointFacts, hold: Hold) -> IngressRequest | Outcome:
    """The request with its exact body (only a POST has one), or the refusal."""
    body: bytes | Outcome = b""
    if request.method == "POST":
        body = read_body(request.META, endpoint.max_body_bytes, hold)
    if isinstance(body, Outcome):
        return body
    return IngressRequest(
        request.method or "", public_url(endpoint, request), WsgiHeaders(request.META), body, client_network(request)
    )


def _not_a_delivery(request: HttpRequest, endpoint: EndpointFacts, pack: Pack, delivery: IngressRequest) -> HttpResponse | None:
    """The answer to a provider's challenge, or to another method than POST; None: it is a delivery."""
    challenge = _asked(pack.handshake, delivery, endpoint)
    if challenge is not None:
        return answers.of_pack(challenge)
    return None if request.method == "POST" else answers.refused(request, METHOD_NOT_ALLOWED)


def _acknowledged(endpoint: EndpointFacts, pack: Pack, outcome: Outcome) -> HttpResponse:
    answer = _asked(pack.acknowledge, outcome, endpoint) if outcome.code in answers.STORED else None
    return answers.stored(outcome) if answer is None else answers.logged_once(answers.of_pack(answer))


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
