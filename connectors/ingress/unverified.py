"""Deliveries whose signature did not match, held for a while.

A provider that never retries (GitHub) would lose them for ever after a botched rotation. They are never routed; `operations.reverify`
admits those that the endpoint's present secrets do verify.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import monotonic
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
MOST_OF_SENDER: Final = 50
"""Of these, from one network: a stranger leaves places for the provider."""
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_BYTES_OF_SENDER: Final = 32 * 1024 * 1024
"""One body of the largest size that a pack accepts, and some more."""
COUNTED_EVERY_SECONDS: Final = 5.0
"""What is not kept is counted in memory, so that strangers write one row now and then."""
KEPT_SECONDS: Final = 3600
"""How long each is held: long enough to notice and fix a rotation, short for a stranger's bytes."""
PRUNED_AT_ONCE: Final = 200
SENDER_LENGTH: Final = 64


def keep(endpoint: EndpointFacts, request: IngressRequest, verdict: Verdict, headers: str) -> bool:
    """Hold a delivery that did not verify, where the policy says so. False: not held (policy, window over, its share is full).

    `headers` is the JSON of the allow-listed ones; those that the check reads are held encrypted. Never raises: the answer to the
    caller does not depend on it.
    """
    if not endpoint.keeps_unverified(datetime.now(UTC)):
        return False
    try:
        with outage.asking(("unverified", endpoint.id)):  # `reverify` may hold its rows for long
            rows = _hold(endpoint, request, verdict, headers)
            if rows == 0:
                _not_kept.add(endpoint.id)
            _not_kept.write(endpoint.id)
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
        sender=request.sender[:SENDER_LENGTH],
        length=len(request.body),
        most=MOST_KEPT,
        most_bytes=MOST_BYTES,
        most_of_sender=MOST_OF_SENDER,
        most_bytes_of_sender=MOST_BYTES_OF_SENDER,
    )


class _NotKept:
    """How many deliveries of each endpoint this process did not keep, until it writes them down; what it has not is lost with it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[int] = Counter()
        self._written_at: dict[int, float] = {}

    def add(self, endpoint_id: int) -> None:
        with self._lock:
            self._counts[endpoint_id] += 1

    def write(self, endpoint_id: int) -> None:
        """Add what was counted to the endpoint's row, at most every few seconds. Raises the database's error; then it is kept."""
        with self._lock:
            count, now = self._counts[endpoint_id], monotonic()
            if not count or now - self._written_at.get(endpoint_id, -COUNTED_EVERY_SECONDS) < COUNTED_EVERY_SECONDS:
                return
            self._counts[endpoint_id] -= count
            self._written_at[endpoint_id] = now
        try:
            _sql.execute("count_not_kept", endpoint_id=endpoint_id, count=count)
        except BaseException:
            with self._lock:
                self._counts[endpoint_id] += count
            raise


_not_kept: Final = _NotKept()


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
