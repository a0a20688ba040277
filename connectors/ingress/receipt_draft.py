"""The receipt that a delivery becomes, before it has an id: what is kept of it, and its identity by the provider's delivery id."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from connectors.delivery import Headers, IngressRequest, ReceiptDraft
from connectors.ingress.endpoint_facts import EndpointFacts
from projection.foreign_code import FAILURES
from projection.identity import digest
from projection.logs import log_event
from projection.safe_text import error_text, storable
from projection.states import ReceiptState

IDEMPOTENCY_KEY_LENGTH: Final = 512
"""Characters of the readable delivery id; its identity is hashed from the whole."""


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
        account=endpoint.account,
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
