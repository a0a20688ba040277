"""Published and derived signature vectors of the providers: each is judged as the provider's own libraries do."""

from __future__ import annotations

from typing import Any

import pytest

from connectors import pack
from connectors.delivery import Headers, IngressRequest
from connectors.signatures import standard_webhooks
from tests.support import samples

PACKS = {
    "github-hmac-sha256": "github",
    "hubspot-v1": "hubspot",
    "hubspot-v2": "hubspot",
    "hubspot-v3": "hubspot",
    "standard-webhooks": "standard_webhooks",
}
VECTORS = samples.vectors(*PACKS)


@samples.needs_samples
@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_a_vector_is_judged_as_its_provider_does(vector: dict[str, Any]) -> None:
    cls = pack.find(PACKS[vector["scheme"]])
    assert cls is not None
    request = IngressRequest(vector["method"], vector.get("url") or "", Headers(vector["headers"]), vector["body"].encode())
    scheme = cls().scheme_named("hubspot" if cls.name == "hubspot" else "")  # of which every version has vectors
    verdict = scheme.verify(request, vector["secrets"], float(vector.get("now", 0)))
    assert verdict.ok == (vector["expected"] == "valid"), verdict


@samples.needs_samples
def test_all_vectors_of_these_schemes_are_there() -> None:
    assert len(VECTORS) == 51


@samples.needs_samples
@pytest.mark.parametrize("vector", [one for one in VECTORS if "secret" in (one.get("reason") or "") and "empty" in one["reason"]])
def test_an_empty_secret_is_refused_where_it_is_set(vector: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="empty"):
        standard_webhooks().check_secret(vector["secrets"][0])
