"""The demo's destinations: one that verifies what `http_forward` sends and counts it, one that is always closed.

They exist only while the demo's connection does, keep nothing of what they receive, and answer nobody who cannot sign.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from prometheus_client import Counter
from standardwebhooks import Webhook, WebhookVerificationError

from connectors.demo import NAMESPACE, RECEIVER
from connectors.flows import connections

LONGEST_BODY_BYTES: Final = 32 * 1024 * 1024
"""The largest delivery that any pack takes (GitHub, 25 MiB) with its envelope."""
FORWARDED: Final = Counter("headrace_demo_forwarded_total", "Deliveries to the demo's receiver, by result.", ["result"])


@csrf_exempt
@require_POST
def receiver(request: HttpRequest) -> HttpResponse:
    """204 for a delivery that verifies, 401 for any other, 413 above 32 MiB, 404 where the demo is not loaded, 503 where
    its connection is disabled."""
    try:
        destination = connections.of((NAMESPACE, RECEIVER))
    except connections.NoConnection:
        return _refuse(404, "no_demo", "The demo is not loaded; run script/manage load_demo.")
    except connections.ConnectionDisabled as disabled:
        return _refuse(503, "disabled", f"{disabled}.")
    # Read directly: Django's own limit is for the console's forms.
    body = request.read(LONGEST_BODY_BYTES + 1)
    if len(body) > LONGEST_BODY_BYTES:
        return _refuse(413, "too_large", "The body is larger than 32 MiB.")
    if not any(_verifies(secret, request, body) for secret in destination.secrets):
        FORWARDED.labels("refused").inc()
        return _refuse(401, "unverified", "The signature of this delivery could not be verified.")
    FORWARDED.labels("verified").inc()
    return HttpResponse(status=204)


@csrf_exempt
@require_POST
def closed(_request: HttpRequest) -> HttpResponse:
    """410, always: a destination that was shut down, so that the demo has dead letters to look at and to replay."""
    return _refuse(410, "closed", "Closed on purpose. Open it with script/manage load_demo --receiver open, then replay.")


def _verifies(secret: str, request: HttpRequest, body: bytes) -> bool:
    try:
        Webhook(secret).verify(body, dict(request.headers), json_parse=False)
    except (WebhookVerificationError, ValueError):  # the library lets bad UTF-8 and bad base64 through as what they are
        return False
    return True


def _refuse(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse({"code": code, "message": message}, status=status)
