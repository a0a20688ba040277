"""Verify and store: the last two steps of a delivery, for the ingress and for callers without HTTP (a test delivery, the demo)."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS

from connectors.delivery import IngressRequest, Outcome
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.store import Arrival, store
from connectors.ingress.verify import refuse, verify


def receive(endpoint: EndpointFacts, request: IngressRequest, *, using: str = DEFAULT_DB_ALIAS) -> Outcome:
    """The last two steps of a delivery to an open endpoint; `unverified` (401), or as `store`. Not inside a transaction."""
    arrival = Arrival.now()
    verdict = verify(endpoint, request, arrival.seconds)
    return store(endpoint, request, arrival, using) if verdict.ok else refuse(endpoint, request, verdict)
