"""Store: the last of a delivery's four steps. One delivery becomes one receipt, committed before the answer (docs/protocol.md#receive).

One INSERT, and nothing else is written or locked. The unique key of the receipt decides about duplicates, so that copies that arrive
together cannot both be first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Self

from django.db import DEFAULT_DB_ALIAS, Error, connections

from connectors.delivery import IngressRequest, Outcome, ReceiptDraft
from connectors.ingress import limits, metrics
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.insert import insert_by_all_means, insert_draft, is_too_large
from connectors.ingress.outage import DATABASE_UNAVAILABLE, outage
from connectors.ingress.receipt_draft import draft_of
from connectors.ingress.spool import spooling
from connectors.ingress.spool.spooled import identified
from connectors.models import Receipt
from projection.logs import log_event
from projection.runtime import wake_up
from projection.safe_text import error_text

TOO_LARGE: Final = Outcome(
    "database_too_small",
    507,
    message="The delivery is larger than the database server accepts (max_allowed_packet), and was not stored.",
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a delivery had been read whole: by the clock (nanoseconds since 1970), and for measuring what follows."""

    nanoseconds: int
    since: float

    @classmethod
    def now(cls) -> Self:
        return cls(time.time_ns(), time.perf_counter())

    @property
    def seconds(self) -> float:
        """Since 1970, as signature schemes take it."""
        return self.nanoseconds / 1e9

    @property
    def microseconds(self) -> int:
        """Since 1970, as the spool keeps it."""
        return self.nanoseconds // 1000


def store(endpoint: EndpointFacts, request: IngressRequest, arrival: Arrival, using: str) -> Outcome:
    """Store a verified delivery. Raises nothing that a caller or the database can cause.

    `accepted` (202) and `duplicate` (200) only with a committed row, `spooled` (202) only with a synced record; `conflict` (409);
    `rate_limited` (429); `database_unavailable` and `spool_full` (503); `database_too_small` (507). One INSERT on connection `using`;
    one more read for a duplicate. Must not be called inside a transaction.
    """
    outcome = limits.take(endpoint) or _kept(endpoint, request, arrival, using)
    metrics.count(outcome.code, endpoint.pack_name, time.perf_counter() - arrival.since)
    return outcome


def _kept(endpoint: EndpointFacts, request: IngressRequest, arrival: Arrival, using: str) -> Outcome:
    """In the database; where that is away and the endpoint is set to spool, in the journal of this host."""
    draft = draft_of(endpoint, request)
    if not endpoint.spools:
        return _insert_durably(endpoint, draft, using)
    draft = identified(draft)
    if spooling.goes_behind():
        outcome = spooling.spool(endpoint, draft, arrival.microseconds)
        if outcome.code == spooling.SPOOLED:
            return outcome
    outcome = _insert_durably(endpoint, draft, using)
    if outcome.code == DATABASE_UNAVAILABLE.code:
        spooling.database_failed()
    elif outcome.code != TOO_LARGE.code:  # which the drain sets aside, where an operator finds it
        return outcome
    return spooling.spool(endpoint, draft, arrival.microseconds)


def store_durably(endpoint: EndpointFacts, request: IngressRequest) -> Outcome:
    """Store a trusted delivery in a transaction of its own. A database failure is the outcome 503, and its connection is dropped."""
    return _insert_durably(endpoint, draft_of(endpoint, request), DEFAULT_DB_ALIAS)


def _insert_durably(endpoint: EndpointFacts, draft: ReceiptDraft, using: str) -> Outcome:
    if connections[using].in_atomic_block:
        raise RuntimeError("receiving inside a transaction would answer before the commit")
    try:
        with outage.asking(None if draft.idempotency_hash is None else (draft.endpoint_id, draft.idempotency_hash)):
            outcome = insert_by_all_means(draft, using)
            read_again = _read_again(endpoint, outcome, using)
    except Error as error:
        refusal = TOO_LARGE if is_too_large(draft, error, using) else DATABASE_UNAVAILABLE
        log_event("receive", level="error", endpoint=endpoint.slug, state=refusal.code, error=error_text(error))
        connections[using].close()
        return refusal
    log_event(
        "receive",
        namespace=endpoint.namespace,
        endpoint=endpoint.slug,
        pack=endpoint.pack_name,
        receipt_id=outcome.receipt_id,
        state=outcome.code,
    )
    if outcome.code == "accepted" or read_again:
        wake_up.notify("route")
    return outcome


def store_within(endpoint: EndpointFacts, request: IngressRequest, received_at: datetime | None = None) -> Outcome:
    """Insert the receipt of a trusted delivery that arrived then (aware; None: now), or find the one that stands for it. Joins the caller's
    transaction.

    Raises the database's error; outside a transaction what it returns is committed.
    """
    outcome = insert_draft(replace(draft_of(endpoint, request), received_at=received_at), DEFAULT_DB_ALIAS)
    _read_again(endpoint, outcome, DEFAULT_DB_ALIAS)
    return outcome


def _read_again(endpoint: EndpointFacts, outcome: Outcome, using: str) -> bool:
    """A resend is read again where something of it was rejected by another pack or other settings than those in force."""
    if outcome.rejected_by is None or outcome.receipt_id is None or endpoint.pack is None:
        return False
    key = endpoint.pack.reading_key(endpoint.pack_incarnation)
    if key == outcome.rejected_by or not Receipt.objects.db_manager(using).read_receipt_again(outcome.receipt_id, key):
        return False
    log_event(
        "reread", receipt_id=outcome.receipt_id, endpoint=endpoint.slug, reason="sent again after the pack or its settings changed"
    )
    return True
