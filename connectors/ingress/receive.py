"""Receive: one delivery becomes one receipt, committed before the answer (docs/protocol.md#receive).

The signature is checked on the raw bytes, before anything parses them; then one INSERT, and nothing else is written or locked. The
unique key of the receipt decides about duplicates, so that copies that arrive together cannot both be first.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import Final

from django.db import DEFAULT_DB_ALIAS, Error, connections

from connectors.delivery import Headers, IngressRequest, Outcome, ReceiptDraft, Verdict
from connectors.ingress import limits, metrics, unverified
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.outage import outage
from connectors.ingress.spool import spooling
from connectors.ingress.spool.spooled import identified
from connectors.ingress.store import store_by_all_means, store_draft
from projection.foreign_code import FAILURES
from projection.identity import digest
from projection.logs import log_event
from projection.runtime import wake_up
from projection.safe_text import error_text, storable
from projection.states import ReceiptState

IDEMPOTENCY_KEY_LENGTH: Final = 512
"""Characters of the readable delivery id; its identity is hashed from the whole."""
DATABASE_RETRY_SECONDS: Final = 10

UNVERIFIED: Final = Outcome("unverified", 401, message="The signature of this delivery could not be verified.")
"""One text for every reason: the caller learns nothing about what was wrong."""
DATABASE_UNAVAILABLE: Final = Outcome(
    "database_unavailable", 503, message="The delivery was not stored; please send it again.", retry_after=DATABASE_RETRY_SECONDS
)


def receive(endpoint: EndpointFacts, request: IngressRequest, *, using: str = DEFAULT_DB_ALIAS) -> Outcome:
    """Verify and store one delivery of an open endpoint. Raises nothing that a caller or the database can cause.

    `accepted` (202) and `duplicate` (200) only with a committed row, `spooled` (202) only with a synced record; `conflict` (409);
    `unverified` (401); `rate_limited` (429); `database_unavailable` and `spool_full` (503). One INSERT on connection `using`; one more
    read for a duplicate. Must not be called inside a transaction.
    """
    arrived_us, since = time.time_ns() // 1000, time.perf_counter()
    verdict = verify(endpoint, request, time.time())
    if not verdict.ok:
        _refuse(endpoint, request, verdict)
        outcome = UNVERIFIED
    else:
        outcome = limits.take(endpoint) or _keep(endpoint, request, arrived_us, using)
    metrics.count(outcome.code, endpoint.pack_name, time.perf_counter() - since)
    return outcome


def verify(endpoint: EndpointFacts, request: IngressRequest, now: float) -> Verdict:
    """The pack's judgement of the signature. A pack whose own code fails has verified nothing."""
    if endpoint.pack is None:
        return Verdict(ok=False, reason="the endpoint's pack is not loaded")
    try:
        return endpoint.pack.verify(request, endpoint.secrets, now)
    except FAILURES as error:  # a pack may be foreign code: its failure refuses, and never answers 500
        return Verdict(ok=False, reason=f"the pack's own check failed with {type(error).__name__}")


def _keep(endpoint: EndpointFacts, request: IngressRequest, arrived_us: int, using: str) -> Outcome:
    """In the database; where that is away and the endpoint is set to spool, in the journal of this host."""
    draft = draft_of(endpoint, request)
    if not endpoint.spools:
        return _store_durably(endpoint, draft, using)
    draft = identified(draft)
    if spooling.goes_behind():
        outcome = spooling.spool(endpoint, draft, arrived_us)
        if outcome.code == spooling.SPOOLED:
            return outcome
    outcome = _store_durably(endpoint, draft, using)
    if outcome.code != DATABASE_UNAVAILABLE.code:
        return outcome
    spooling.database_failed()
    return spooling.spool(endpoint, draft, arrived_us)


def store_durably(endpoint: EndpointFacts, request: IngressRequest) -> Outcome:
    """As `store`, in a transaction of its own; a database failure is the outcome 503, and its connection is dropped."""
    return _store_durably(endpoint, draft_of(endpoint, request), DEFAULT_DB_ALIAS)


def _store_durably(endpoint: EndpointFacts, draft: ReceiptDraft, using: str) -> Outcome:
    if connections[using].in_atomic_block:
        raise RuntimeError("receiving inside a transaction would answer before the commit")
    try:
        with outage.asking():
            outcome = store_by_all_means(draft, using)
    except Error as error:
        log_event("receive", level="error", endpoint=endpoint.slug, state="database_unavailable", error=error_text(error))
        connections[using].close()
        return DATABASE_UNAVAILABLE
    log_event(
        "receive",
        namespace=endpoint.namespace,
        endpoint=endpoint.slug,
        pack=endpoint.pack_name,
        receipt_id=outcome.receipt_id,
        state=outcome.code,
    )
    if outcome.code == "accepted":
        wake_up.notify("route")
    return outcome


def store(endpoint: EndpointFacts, request: IngressRequest) -> Outcome:
    """Insert the receipt of a delivery that is trusted, or find the one that stands for it. Joins the caller's transaction.

    Raises the database's error; outside a transaction what it returns is committed.
    """
    return store_draft(draft_of(endpoint, request), DEFAULT_DB_ALIAS)


def draft_of(endpoint: EndpointFacts, request: IngressRequest) -> ReceiptDraft:
    """The receipt of a delivery: exact bytes, allow-listed headers, the URL without its query (which may carry a token)."""
    delivery_id = delivery_id_of(endpoint, request)
    return ReceiptDraft(
        namespace=endpoint.namespace,
        pack_id=endpoint.pack_id,
        pack_incarnation=endpoint.pack_incarnation,
        endpoint_id=endpoint.id,
        idempotency_key=readable_id(delivery_id) if delivery_id else None,
        idempotency_hash=digest(delivery_id) if delivery_id else None,
        body=request.body,
        body_sha256=hashlib.sha256(request.body).hexdigest(),
        headers=stored_headers(endpoint, request.headers),
        method=request.method,
        url=storable(request.url.partition("?")[0]),
        state=ReceiptState.PENDING.value,
    )


def readable_id(delivery_id: str) -> str:
    """The id as its column keeps it; with its digest where that is not the id itself, so that two ids never read the same."""
    text = storable(delivery_id)
    if text == delivery_id and len(text) <= IDEMPOTENCY_KEY_LENGTH:
        return text
    mark = f" … sha256:{digest(delivery_id)}"
    return text[: IDEMPOTENCY_KEY_LENGTH - len(mark)] + mark


def delivery_id_of(endpoint: EndpointFacts, request: IngressRequest) -> str | None:
    """The provider's id of the request; None when there is none, it is blank, or the body it is in cannot be read."""
    if endpoint.pack is None:
        return None
    try:
        found = endpoint.pack.delivery_id(request)
    except FAILURES as error:  # without an id the delivery is stored as a new fact, and the router tells what is wrong
        log_event("delivery_id_unreadable", level="warning", endpoint=endpoint.slug, error=error_text(error))
        return None
    text = "" if found is None else str(found)
    return text if text.strip() else None


def stored_headers(endpoint: EndpointFacts, headers: Headers) -> str:
    """JSON object of the allow-listed headers that were sent."""
    names = endpoint.pack.stored_headers() if endpoint.pack else ()
    return json.dumps({name: storable(value) for name, value in headers.only(names).items()})


def _refuse(endpoint: EndpointFacts, request: IngressRequest, verdict: Verdict) -> None:
    """Log why, and keep the delivery apart where the endpoint's policy says so. The answer is the same either way."""
    kept = unverified.keep(endpoint, request, verdict, stored_headers(endpoint, request.headers))
    log_event(
        "unverified",
        level="warning",
        namespace=endpoint.namespace,
        endpoint=endpoint.slug,
        pack=endpoint.pack_name,
        state="kept" if kept else "refused",
        reason=verdict.sentence,
    )
