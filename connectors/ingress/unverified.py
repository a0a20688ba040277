"""Deliveries whose signature did not match, held for a while.

A provider that never retries (GitHub) would lose them for ever after a botched rotation. They are never routed; `operations.reverify`
admits those that the endpoint's present secrets do verify.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.db import Error, connections

from connectors import secrets
from connectors.delivery import Headers, IngressRequest, Verdict
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.outage import INGRESS, outage
from projection.database.catalogue import Sender
from projection.logs import log_event
from projection.safe_text import error_text, storable

_sql: Final = Sender(Path(__file__).parent, INGRESS)

MOST_KEPT: Final = 200
"""Deliveries held at once per endpoint: anybody can send one."""
KEPT_SECONDS: Final = 3600
"""How long each is held: long enough to notice and fix a rotation, short for a stranger's bytes."""
PRUNED_AT_ONCE: Final = 200


def keep(endpoint: EndpointFacts, request: IngressRequest, verdict: Verdict, headers: str) -> bool:
    """Hold a delivery that did not verify, where the policy says so. False: not held (policy, window over, 200 held already).

    `headers` is the JSON of the allow-listed ones; those that the check reads are held encrypted. Never raises: the answer to the
    caller does not depend on it.
    """
    if not endpoint.keeps_unverified(datetime.now(UTC)):
        return False
    try:
        with outage.asking(("unverified", endpoint.id)):  # `reverify` may hold its rows for long
            rows = _hold(endpoint, request, verdict, headers)
    except Error as error:
        log_event("unverified_lost", level="error", endpoint=endpoint.slug, error=error_text(error))
        connections[INGRESS].close()
        return False
    return rows == 1


def _hold(endpoint: EndpointFacts, request: IngressRequest, verdict: Verdict, headers: str) -> int:
    prune(endpoint.id)
    return _sql.execute(
        "keep_unverified_delivery",
        endpoint_id=endpoint.id,
        body=request.body,
        body_sha256=hashlib.sha256(request.body).hexdigest(),
        headers=headers,
        url=storable(request.url.partition("?")[0]),
        evidence=_evidence(endpoint, request),
        reason=storable(verdict.sentence),
        most=MOST_KEPT,
    )


def prune(endpoint_id: int) -> int:
    """Delete what an endpoint has held for over an hour, at most 200 rows; how many."""
    return _sql.execute("prune_unverified_deliveries", endpoint_id=endpoint_id, seconds=KEPT_SECONDS, most=PRUNED_AT_ONCE)


def _evidence(endpoint: EndpointFacts, request: IngressRequest) -> str:
    """What a later check needs beside body and stored headers, encrypted: such headers may be credentials."""
    names = getattr(endpoint.scheme, "headers", ()) if endpoint.pack else ()
    return secrets.encrypt([{"url": request.url, "method": request.method, "headers": request.headers.only(names)}])


def restored(body: bytes, headers: str, url: str, evidence: str) -> IngressRequest:
    """The request of a held delivery as it arrived, as far as a check reads it. Raises SecretsUnreadable."""
    nothing: dict[str, Any] = {"url": url, "method": "POST", "headers": {}}
    found = next(iter(secrets.decrypt(evidence)), nothing)
    return IngressRequest(found["method"], found["url"], Headers({**json.loads(headers or "{}"), **found["headers"]}), body)
