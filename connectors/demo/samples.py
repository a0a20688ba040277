"""Sample deliveries: hand-written in the providers' documented shapes, signed as the provider signs, received like any other."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from standardwebhooks import Webhook

from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.paths import ingress_path
from connectors.ingress.receive import receive
from connectors.models import Receipt
from connectors.packs.generic import Generic
from connectors.packs.github import GitHub
from connectors.signatures.hubspot import TIMESTAMP_HEADER, V3_HEADER, sign_v3
from connectors.signatures.plain import HmacSha256

FOLDER: Final = Path(__file__).parent
ORDERS: Final = "orders"
ENDPOINTS: Final = ("hubspot", "github", "messages", ORDERS)
"""Slugs of the demo's endpoints; the samples of each stand in `<slug>.jsonl`, one delivery a line."""
JSON: Final = {"Content-Type": "application/json"}
KNOWN: Final = "known"
EARLIEST: Final = 500
"""Receipts of an endpoint among which a sample is looked for: the demo's are its first ones."""

Signer = Callable[[str, str, Mapping[str, str], bytes], dict[str, str]]
"""(secret, url, headers of the sample, body) → the headers that the provider adds."""


def _hubspot(secret: str, url: str, _headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time() * 1000))
    request = IngressRequest("POST", url, Headers(), body)
    return {TIMESTAMP_HEADER: timestamp, V3_HEADER: sign_v3(request, secret.encode(), timestamp)}


def _hmac(scheme: HmacSha256) -> Signer:
    return lambda secret, _url, _headers, body: {scheme.header: scheme.sign(body, secret.encode())}


def _messages(secret: str, _url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    now = datetime.now(UTC)
    signature = Webhook(secret).sign(headers["webhook-id"], now, body.decode())
    return {"webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}


SIGNERS: Final[dict[str, Signer]] = {
    "hubspot": _hubspot,
    "github": _hmac(GitHub.signature),
    "messages": _messages,
    ORDERS: _hmac(Generic.signature),
}


def post_all(namespace: str, service_url: str) -> Iterator[str]:
    """Receive each sample; yields the ingress's code for it, or `known` for one that was stored before this call."""
    for slug in ENDPOINTS:
        endpoint = _endpoint(namespace, slug)
        stored = _stored(endpoint)
        for headers, body in read(slug):
            yield KNOWN if hashlib.sha256(body).hexdigest() in stored else _post(endpoint, service_url, headers, body)


def post_orders(namespace: str, service_url: str, count: int) -> Iterator[str]:
    """Receive `count` new orders, which the demo's closed destination will refuse; yields the ingress's code for each.

    One in ten is a second event of the order before it, so that lanes and replays have an order to keep.
    """
    endpoint = _endpoint(namespace, ORDERS)
    batch = secrets.token_hex(4)
    for number in range(count):
        paid = number % 10 == 9
        order = {"id": f"ord_{batch}_{number - paid}", "total": f"{number % 90 + 9}.90"}
        item = {
            "id": f"evt_{batch}_{number}",
            "type": "order.paid" if paid else "order.placed",
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "order": order,
        }
        yield _post(endpoint, service_url, JSON, _compact(item))


def read(slug: str) -> Iterator[tuple[dict[str, str], bytes]]:
    """The samples of an endpoint: headers and exact bytes of the body (compact, as providers send it)."""
    for line in (FOLDER / f"{slug}.jsonl").read_text(encoding="utf-8").splitlines():
        sample: dict[str, Any] = json.loads(line)
        yield {**JSON, **sample.get("headers", {})}, _compact(sample["body"])


def _compact(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _endpoint(namespace: str, slug: str) -> EndpointFacts:
    endpoint = endpoint_facts.load((namespace, slug))
    if endpoint is None:
        raise LookupError(f"the demo's endpoint {slug!r} is missing in namespace {namespace!r}; load the demo's configuration")
    return endpoint


def _stored(endpoint: EndpointFacts) -> frozenset[str]:
    rows = Receipt.objects.filter(endpoint_id=endpoint.id).order_by("id").values_list("body_sha256", flat=True)
    return frozenset(rows[:EARLIEST])


def _post(endpoint: EndpointFacts, service_url: str, headers: Mapping[str, str], body: bytes) -> str:
    url = f"{endpoint.public_url or service_url.rstrip('/')}{ingress_path(endpoint.namespace, endpoint.slug)}"
    signature = SIGNERS[endpoint.slug](endpoint.secrets[0], url, headers, body)
    return receive(endpoint, IngressRequest("POST", url, Headers({**headers, **signature}), body)).code
