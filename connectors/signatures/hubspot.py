"""HubSpot's three signatures. v2 and v3 cover the public URL that HubSpot called, which a TLS proxy changes on the way.

v1: SHA-256(secret + body); v2: SHA-256(secret + method + URL + body), both hex, without a time; v3: HMAC-SHA256 over method + URL +
body + time stamp (milliseconds), base64. Source: developers.hubspot.com, "Validating requests".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from connectors.delivery import IngressRequest, Verdict
from connectors.signatures.checks import (
    TOLERANCE_SECONDS,
    VERIFIED,
    check_text_secret,
    is_one_of,
    only_header,
    refused,
    timestamp_problem,
    to_bytes,
    usable,
)

V3_HEADER: Final = "X-HubSpot-Signature-v3"
TIMESTAMP_HEADER: Final = "X-HubSpot-Request-Timestamp"
HEADER: Final = "X-HubSpot-Signature"
VERSION_HEADER: Final = "X-HubSpot-Signature-Version"

NOT_V3: Final = refused(
    f"{V3_HEADER} is missing; this endpoint accepts v3 alone",
    'For a sender that signs by v1 or v2 only, set signature = "hubspot" on an endpoint of its own.',
)

# HubSpot signs v3 over the URL with these characters decoded, whatever form the URL was configured in.
_DECODED: Final = {
    "%3A": ":", "%2F": "/", "%3F": "?", "%40": "@", "%21": "!", "%24": "$", "%27": "'", "%28": "(", "%29": ")", "%2A": "*",
    "%2C": ",", "%3B": ";",
}  # fmt: skip


def sign_v1(request: IngressRequest, secret: bytes) -> str:
    return hashlib.sha256(secret + request.body).hexdigest()


def sign_v2(request: IngressRequest, secret: bytes) -> str:
    return hashlib.sha256(secret + to_bytes(request.method + request.url) + request.body).hexdigest()


def sign_v3(request: IngressRequest, secret: bytes, timestamp: str, url: str | None = None) -> str:
    content = to_bytes(request.method + (url or request.url)) + request.body + to_bytes(timestamp)
    return base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode("ascii")


def decoded_url(url: str) -> str:
    for escape, character in _DECODED.items():
        url = url.replace(escape, character).replace(escape.lower(), character)
    return url


@dataclass(frozen=True, slots=True)
class HubSpot:
    """v3 where its header is there (then only v3 counts), else the version that the version header names, v1 without it.

    `only_v3` refuses the older versions: both can be sent again by whoever saw one, and v1 is open to length extension.
    """

    name: str = "hubspot"
    only_v3: bool = False
    needs_secret: bool = True
    headers: tuple[str, ...] = (V3_HEADER, TIMESTAMP_HEADER, HEADER, VERSION_HEADER)

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:
        keys = usable(secrets)
        if not keys:
            return refused("the endpoint has no valid secret")
        if V3_HEADER in request.headers:
            return _verify_v3(request, keys, now)
        return NOT_V3 if self.only_v3 else _verify_older(request, keys)

    def check_secret(self, secret: str) -> None:
        check_text_secret(secret)


def _verify_older(request: IngressRequest, keys: Sequence[bytes]) -> Verdict:
    version = request.headers.get(VERSION_HEADER, "v1")
    if version not in ("v1", "v2"):
        return refused("the signature version is not v1, v2 or v3")
    presented = only_header(request, HEADER)
    if presented is None:
        return refused(f"{V3_HEADER} or {HEADER} is missing, empty, too long or sent twice")
    sign = sign_v1 if version == "v1" else sign_v2
    if is_one_of(presented, (sign(request, key) for key in keys)):
        return VERIFIED
    return refused(f"no secret of the endpoint matches the {version} signature", "" if version == "v1" else url_hint(request))


def _verify_v3(request: IngressRequest, keys: Sequence[bytes], now: float) -> Verdict:
    presented = only_header(request, V3_HEADER)
    if presented is None:
        return refused(f"{V3_HEADER} is empty, too long or sent twice")
    timestamp = only_header(request, TIMESTAMP_HEADER)
    problem = timestamp_problem(timestamp, now, tolerance=TOLERANCE_SECONDS, per_second=1000)
    if timestamp is None or problem is not None:
        return refused(problem or "the timestamp header is missing")
    urls = dict.fromkeys((request.url, decoded_url(request.url)))
    if is_one_of(presented, (sign_v3(request, key, timestamp, url) for key in keys for url in urls)):
        return VERIFIED
    return refused("no secret of the endpoint matches the v3 signature", url_hint(request))


def url_hint(request: IngressRequest) -> str:
    """What an operator should look at: HubSpot signs the URL, so a wrong `public_url` looks like a wrong secret."""
    return (
        f"HubSpot signs the URL; this endpoint checked {request.url.partition('?')[0]}. If HubSpot calls another one, "
        "set the endpoint's public_url to its scheme and host."
    )


def hubspot() -> HubSpot:
    """Every version that HubSpot has."""
    return HubSpot()


def hubspot_v3() -> HubSpot:
    """The newest version alone: the only one that covers the time."""
    return HubSpot("hubspot_v3", only_v3=True)
