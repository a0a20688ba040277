"""Verify: the third of a delivery's four steps. The signature is checked on the raw bytes, before anything parses them."""

from __future__ import annotations

from typing import Final

from connectors.delivery import IngressRequest, Outcome, Verdict
from connectors.ingress import metrics, unverified
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.receipt_draft import stored_headers
from projection.foreign_code import FAILURES
from projection.logs import log_event

UNVERIFIED: Final = Outcome("unverified", 401, message="The signature of this delivery could not be verified.")
"""One text for every reason: the caller learns nothing about what was wrong."""


def verify(endpoint: EndpointFacts, request: IngressRequest, now: float) -> Verdict:
    """The pack's judgement of the signature. A pack whose own code fails has verified nothing."""
    if endpoint.pack is None:
        return Verdict(ok=False, reason="the endpoint's pack is not loaded")
    try:
        check = endpoint.scheme.verify if endpoint.signature else endpoint.pack.verify
        return check(request, endpoint.secrets, now)
    except FAILURES as error:  # a pack may be foreign code: its failure refuses, and never answers 500
        return Verdict(ok=False, reason=f"the pack's own check failed with {type(error).__name__}")


def refuse(endpoint: EndpointFacts, request: IngressRequest, verdict: Verdict) -> Outcome:
    """Log why, and keep the delivery for inspection where the endpoint's policy says so. The answer is the same either way."""
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
    metrics.count(UNVERIFIED.code, endpoint.pack_name)
    return UNVERIFIED
