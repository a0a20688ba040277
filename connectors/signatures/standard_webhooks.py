"""Standard Webhooks (and Svix, which uses other header names): id, time stamp and body are signed; several signatures at once.

`v1` is HMAC-SHA256 under a shared secret (`whsec_` + base64), `v1a` ed25519 under a public key (`whpk_` + base64). Other versions
in the list are skipped. Source: standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks.webhooks import hmac_data

from connectors.delivery import IngressRequest, Verdict
from connectors.signatures.checks import TOLERANCE_SECONDS, VERIFIED, is_one_of, only_header, refused, timestamp_problem, to_bytes

SHARED_PREFIX: Final = "whsec_"
PUBLIC_PREFIX: Final = "whpk_"
PRIVATE_PREFIX: Final = "whsk_"
SHARED_KEY: Final = "v1"
"""Version of a signature under a shared secret."""
ED25519_KEY_BYTES: Final = 32
MOST_SIGNATURES: Final = 32
"""Entries of one signature header; a sender that rotates its secret sends two or three."""
HEADER_FAMILIES: Final = ("webhook", "svix")


def _decode(text: str) -> bytes:
    """Base64, padded or not. Raises ValueError for anything else: the lenient decoder would drop characters silently."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the secret is not base64 (after its whsec_ or whpk_ prefix)") from None


def key_of(secret: str) -> tuple[str, bytes]:
    """(`v1` or `v1a`, key bytes) of a configured secret. Raises ValueError naming what is wrong."""
    if secret.startswith(PRIVATE_PREFIX):
        raise ValueError("whsk_ is the sender's private key; configure its public key, whpk_…")
    version, encoded = (
        ("v1a", secret.removeprefix(PUBLIC_PREFIX))
        if secret.startswith(PUBLIC_PREFIX)
        else ("v1", secret.removeprefix(SHARED_PREFIX))
    )
    if not encoded.strip():
        raise ValueError("the secret is empty, so anyone could sign; set a secret")
    key = _decode(encoded)
    if version == "v1a" and len(key) != ED25519_KEY_BYTES:
        raise ValueError(f"a whpk_ key has {ED25519_KEY_BYTES} bytes; this one has {len(key)}")
    return version, key


def _usable(secrets: Sequence[str]) -> list[tuple[str, bytes]]:
    keys = []
    for secret in secrets:
        try:
            keys.append(key_of(secret))
        except ValueError:  # such a secret is refused where it is set; one that got in anyway matches nothing
            continue
    return keys


def _matches(entries: Sequence[str], content: bytes, keys: Sequence[tuple[str, bytes]]) -> bool:
    # The body is hashed once for each key, however many signatures a stranger sends.
    macs = [base64.b64encode(hmac_data(key, content)).decode("ascii") for kind, key in keys if kind == SHARED_KEY]
    for entry in entries:
        version, _, signature = entry.partition(",")
        if version == SHARED_KEY and signature and is_one_of(signature, macs):
            return True
        if version == "v1a" and signature and any(_ed25519(key, signature, content) for kind, key in keys if kind == "v1a"):
            return True
    return False


def _ed25519(key: bytes, signature: str, content: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(to_bytes(signature), validate=True), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def _header_problem(request: IngressRequest, message_id: str, entries: int) -> str | None:
    if entries > MOST_SIGNATURES:
        return f"more than {MOST_SIGNATURES} signatures are listed"
    if any(request.headers.get(f"{family}-id", message_id) != message_id for family in HEADER_FAMILIES):
        # The other one is signed by nobody: it would make a new delivery of an old one that somebody recorded.
        return "webhook-id and svix-id differ, and only one of them is signed"
    return None


@dataclass(frozen=True, slots=True)
class StandardWebhooks:
    """`tolerance` is seconds in both directions, inclusive; the spec recommends five minutes."""

    tolerance: float = TOLERANCE_SECONDS
    name: str = "standard-webhooks"
    needs_secret: bool = True

    @property
    def headers(self) -> tuple[str, ...]:
        return tuple(f"{family}-{part}" for family in HEADER_FAMILIES for part in ("id", "timestamp", "signature"))

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:
        family = next((name for name in HEADER_FAMILIES if f"{name}-signature" in request.headers), None)
        if family is None:
            return refused("the header webhook-signature (or svix-signature) is missing")
        message_id, timestamp, signatures = (only_header(request, f"{family}-{part}") for part in ("id", "timestamp", "signature"))
        if message_id is None or signatures is None:
            return refused(f"{family}-id or {family}-signature is missing, empty, too long or sent twice")
        entries = signatures.split(" ")
        problem = timestamp_problem(timestamp, now, tolerance=self.tolerance) or _header_problem(request, message_id, len(entries))
        if problem is not None:
            return refused(problem)
        keys = _usable(secrets)
        if not keys:
            return refused("the endpoint has no valid secret")
        content = to_bytes(f"{message_id}.{timestamp}.") + request.body
        return (
            VERIFIED
            if _matches(entries, content, keys)
            else refused(f"no secret of the endpoint matches a signature in {family}-signature")
        )

    def check_secret(self, secret: str) -> None:
        key_of(secret)


def standard_webhooks(*, tolerance: float = TOLERANCE_SECONDS) -> StandardWebhooks:
    """The scheme. Raises ValueError for a tolerance below 1 s: zero would refuse everything, or hide that the check is off."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 1 <= tolerance <= 86_400:
        raise ValueError(f"tolerance must be from 1 to 86400 seconds, not {tolerance!r}")
    return StandardWebhooks(tolerance)
