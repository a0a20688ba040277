"""Answers of the ingress (docs/ingress.md): JSON with a stable `code` and a sentence, or the pack's own.

202 stored · 200 duplicate · 401 · 404 · 409 · 413 · 429 · 503 · 507.
"""

from __future__ import annotations

import json
from typing import Final

from django.http import HttpRequest, HttpResponse

from connectors.delivery import Answer, Outcome
from connectors.ingress import metrics
from connectors.ingress.body import drain
from connectors.ingress.outage import DATABASE_UNAVAILABLE
from connectors.ingress.spool.spooling import FULL, SPOOLED
from connectors.ingress.store import TOO_LARGE

STORED: Final = frozenset({"accepted", "duplicate", "conflict", SPOOLED})
LOGGED: Final = STORED | {"unverified", "internal_error", DATABASE_UNAVAILABLE.code, FULL.code, TOO_LARGE.code}
"""What has a line of ours in the log, with the reason: Django need not add its own, which is the only one of all other refusals."""


class _Refusal(HttpResponse):
    """An answer given before the body was read: what the sender still writes is dropped once the answer is out."""

    def __init__(self, request: HttpRequest, content: bytes, status: int) -> None:
        super().__init__(content, content_type="application/json", status=status)
        self._environ = request.META

    def close(self) -> None:
        super().close()
        drain(self._environ)


def refused(request: HttpRequest, outcome: Outcome) -> HttpResponse:
    """The answer to a request that was not stored, counted by its code."""
    metrics.count(outcome.code)
    response = _Refusal(request, _text(outcome), outcome.status)
    if outcome.status == 405:
        response.headers["Allow"] = "POST"
    return _with_headers(response, outcome)


def stored(outcome: Outcome) -> HttpResponse:
    """The JSON of what became of a delivery that was read whole."""
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
    return _plain(logged_once(response) if outcome.code in LOGGED else response)


def logged_once(response: HttpResponse) -> HttpResponse:
    """Django adds no line of its own to the log."""
    response._has_been_logged = True  # type: ignore[attr-defined]  # what django.utils.log.log_response looks at
    return response


def of_pack(answer: Answer) -> HttpResponse:
    """A pack's own answer."""
    return _plain(HttpResponse(answer.body, content_type=answer.content_type, status=answer.status, headers=dict(answer.headers)))


def _plain(response: HttpResponse) -> HttpResponse:
    # An answer may repeat what a stranger sent (a challenge): no browser may take it for anything but what it says it is.
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-store"
    # Set here because Django's own middleware, which would, does not see the ingress: senders know where the answer ends.
    response.headers["Content-Length"] = str(len(response.content))
    return response
