"""A delivery of one's own making: signed as the provider would, received as the provider's would be, marked by its User-Agent.

What it leaves is a real receipt: it is routed and executed as any other. The mark stays with the receipt, for every pack keeps that
header.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from connectors import audit_log
from connectors.configuration.change import ConfigurationRefused
from connectors.delivery import Headers, IngressRequest, Outcome
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.receive import receive
from connectors.pack import Sample
from connectors.signatures.signing import CannotSign, signed_headers
from projection.foreign_code import FAILURES
from projection.safe_text import error_text

MARK: Final = "Headrace test delivery"
"""What the User-Agent of such a delivery starts with."""
UNAVAILABLE: Final = {
    "disabled": "the endpoint or its pack is disabled (answers 503); enable it first",
    "discarding": "the endpoint or its pack is disabled (answers 410); enable it first",
    "broken": "its pack or secrets cannot be loaded; see the log for the reason",
}


class TrialRefused(ConfigurationRefused):
    """No test delivery can be sent; the message says why."""


def sample_of(endpoint: EndpointFacts) -> Sample:
    """A fresh sample of the endpoint's pack. Raises TrialRefused where it has none."""
    if endpoint.pack is None:
        raise TrialRefused(f"endpoint {endpoint.slug!r}: {UNAVAILABLE['broken']}")
    try:
        found = endpoint.pack.sample(int(time.time() * 1000))
    except FAILURES as error:  # a pack may be foreign code
        raise TrialRefused(f"the sample of pack {endpoint.pack_name!r} failed: {error_text(error)}") from None
    if found is None:
        raise TrialRefused(f"pack {endpoint.pack_name!r} has no sample (a fixture.json beside its module); write a body instead")
    return found


def obstacle(endpoint: EndpointFacts) -> str | None:
    """Why no test delivery can be sent to the endpoint, in a sentence; None: it can."""
    if endpoint.availability != "open" or endpoint.pack is None:
        return UNAVAILABLE.get(endpoint.availability, UNAVAILABLE["broken"])
    try:
        scheme = endpoint.scheme
        if scheme.needs_secret and not endpoint.secrets:
            return "the endpoint has no valid secret to sign with; rotate to a new one"
        probe = IngressRequest("POST", endpoint.url, Headers({"webhook-id": "probe"}), b"")
        signed_headers(scheme, probe, next(iter(endpoint.secrets), ""), time.time())
    except CannotSign as cannot:
        return str(cannot)
    except FAILURES as error:  # a pack may be foreign code
        return f"the pack's own code failed: {error_text(error)}"
    return None


def send(endpoint: EndpointFacts, headers: Mapping[str, str], body: str, *, actor: str, reason: str = "") -> Outcome:
    """Sign and receive one delivery by the newest live secret; audited. `endpoint` should be fresh (`endpoint_facts.load`).

    Raises TrialRefused, before anything is stored. Not inside a transaction.
    """
    why = obstacle(endpoint)
    if why is not None or endpoint.pack is None:
        raise TrialRefused(f"nothing was sent to endpoint {endpoint.slug!r}: {why}")
    raw = body.encode("utf-8", "surrogatepass")
    if len(raw) > endpoint.max_body_bytes:
        raise TrialRefused(f"the body has {len(raw)} bytes; endpoint {endpoint.slug!r} accepts at most {endpoint.max_body_bytes}")
    request = _signed(endpoint, headers, raw, actor)
    outcome = receive(endpoint, request)
    detail = {"code": outcome.code, "receipt": outcome.receipt_id}
    audit_log.record(actor, "endpoint.try", f"{endpoint.namespace}/{endpoint.slug}", reason, detail=detail)
    return outcome


def _signed(endpoint: EndpointFacts, headers: Mapping[str, str], body: bytes, actor: str) -> IngressRequest:
    marked = {**headers, "User-Agent": f"{MARK} by {actor.encode('ascii', 'replace').decode()}"}
    unsigned = IngressRequest("POST", endpoint.url, Headers(marked), body)
    assert endpoint.pack is not None  # noqa: S101  # `obstacle` has said so
    try:
        signature = signed_headers(endpoint.scheme, unsigned, next(iter(endpoint.secrets), ""), time.time())
    except CannotSign as cannot:
        raise TrialRefused(f"nothing was sent to endpoint {endpoint.slug!r}: {cannot}") from None
    signing = {name.lower() for name in signature}
    kept = {name: value for name, value in marked.items() if name.lower() not in signing}
    return IngressRequest("POST", endpoint.url, Headers({**kept, **signature}), body)
