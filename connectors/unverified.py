"""Deliveries whose signature did not match, kept apart for a while.

A provider that never retries (GitHub) would lose them for ever after a botched rotation. They are never routed; `reverify` admits
those that the endpoint's present secrets do verify.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.db import Error, connection

from connectors import audit_log, secrets
from connectors.delivery import Headers, IngressRequest, Outcome, Verdict
from connectors.endpoints_cache import EndpointFacts
from projection import clock, wake
from projection.logs import log_event
from projection.retry_policy import error_text, storable
from projection.sending import Sender
from projection.units import run_unit

_sql: Final = Sender(Path(__file__).parent / "sql")

MOST_KEPT: Final = 200
"""Deliveries held at once per endpoint: anybody can send one."""
KEPT_SECONDS: Final = 3600
"""How long each is held: long enough to notice and mend a rotation, short for a stranger's bytes."""
PRUNED_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Refused:
    """A held delivery that is still not verified, and why."""

    unverified_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """A held delivery that verified: the receipt it became (`accepted`), or repeats (`duplicate`, `conflict`)."""

    unverified_id: int
    receipt_id: int
    code: str


@dataclass(frozen=True, slots=True)
class Reverified:
    admitted: tuple[Admitted, ...] = ()
    refused: tuple[Refused, ...] = ()


def keep(endpoint: EndpointFacts, request: IngressRequest, verdict: Verdict, headers: str) -> bool:
    """Hold a delivery that did not verify, where the policy says so. False: not held (policy, window over, 200 held already).

    `headers` is the JSON of the allow-listed ones; those that the check reads are held encrypted. Never raises: the answer to the
    caller does not depend on it.
    """
    if not endpoint.keeps_unverified(datetime.now(UTC)):
        return False
    try:
        prune(endpoint.id)
        rows = _sql.execute(
            "keep_unverified_delivery",
            endpoint_id=endpoint.id,
            body=request.body,
            body_sha256=hashlib.sha256(request.body).hexdigest(),
            headers=headers,
            url=storable(request.url.partition("?")[0]),
            evidence=_evidence(endpoint, request),
            reason=storable(f"{verdict.reason}. {verdict.hint}" if verdict.hint else verdict.reason),
            most=MOST_KEPT,
        )
    except Error as error:
        log_event("unverified_lost", level="error", endpoint=endpoint.slug, error=error_text(error))
        connection.close()
        return False
    return rows == 1


def prune(endpoint_id: int) -> int:
    """Delete what an endpoint has held for over an hour, at most 200 rows; how many."""
    return _sql.execute("prune_unverified_deliveries", endpoint_id=endpoint_id, seconds=KEPT_SECONDS, most=PRUNED_AT_ONCE)


def reverify(endpoint: EndpointFacts, *, actor: str, reason: str = "") -> Reverified:
    """Check what the endpoint holds again, with its present secrets, and admit as receipts what verifies.

    A signed time stamp is judged as of the delivery's arrival, not of today: a delivery that was on time stays on time. Each one is
    a transaction of its own, so two operators admit it once; audited. `endpoint` should be fresh (`endpoints_cache.load`).
    """
    prune(endpoint.id)
    ids = [row[0] for row in _sql.fetch("read_unverified_ids", endpoint_id=endpoint.id)]
    results = [run_unit("reverify", lambda one=one: _reverify_one(endpoint, one)) for one in ids]  # type: ignore[misc]  # mypy: lambda default
    done = Reverified(
        tuple(one for one in results if isinstance(one, Admitted)), tuple(one for one in results if isinstance(one, Refused))
    )
    if done.admitted:
        wake.notify("route")
    target = f"{endpoint.namespace}/{endpoint.slug}"
    audit_log.record(actor, "endpoint.reverify", target, reason, len(done.admitted), {"refused": len(done.refused)})
    return done


def _reverify_one(endpoint: EndpointFacts, unverified_id: int) -> Admitted | Refused | None:
    from connectors.receive import store, verify  # here: receive keeps deliveries through this module

    rows = _sql.fetch("lock_unverified_delivery", id=unverified_id)
    if not rows:
        return None
    body, headers, url, evidence, received_at = rows[0]
    request = _restored(bytes(body), headers, url, evidence)
    arrived = clock.from_db(received_at)
    verdict = verify(endpoint, request, arrived.timestamp())
    if not verdict.ok:
        return Refused(unverified_id, f"{verdict.reason}. {verdict.hint}" if verdict.hint else verdict.reason)
    outcome: Outcome = store(endpoint, request)
    receipt_id = outcome.receipt_id or 0
    _sql.execute("admit_unverified_delivery", id=unverified_id, receipt_id=receipt_id)
    log_event("reverify", endpoint=endpoint.slug, receipt_id=receipt_id, state=outcome.code)
    return Admitted(unverified_id, receipt_id, outcome.code)


def _evidence(endpoint: EndpointFacts, request: IngressRequest) -> str:
    """What a later check needs beside body and stored headers, encrypted: such headers may be credentials."""
    names = getattr(endpoint.pack.scheme(), "headers", ()) if endpoint.pack else ()
    return secrets.encrypt([{"url": request.url, "method": request.method, "headers": request.headers.only(names)}])


def _restored(body: bytes, headers: str, url: str, evidence: str) -> IngressRequest:
    nothing: dict[str, Any] = {"url": url, "method": "POST", "headers": {}}
    found = next(iter(secrets.decrypt(evidence)), nothing)
    return IngressRequest(found["method"], found["url"], Headers({**json.loads(headers or "{}"), **found["headers"]}), body)
