"""What the schemes share: reading a header once, comparing bytes, judging the age of a time stamp, refusing empty secrets."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from typing import Final

from connectors.delivery import IngressRequest, Verdict

TOLERANCE_SECONDS: Final = 300
"""How far a signed time stamp may lie from now, in the past or in the future; exactly this far is still accepted. Every provider
that signs one documents five minutes."""

MAX_SIGNATURE_HEADER: Final = 8192
"""Characters; longer headers are no signature (gunicorn refuses them too), and cost no cryptography."""

MAX_TIMESTAMP_DIGITS: Final = 20


def refused(reason: str, hint: str = "") -> Verdict:
    return Verdict(ok=False, reason=reason, hint=hint)


VERIFIED: Final = Verdict(ok=True)


def only_header(request: IngressRequest, name: str) -> str | None:
    """The value of a header that was sent exactly once and is not empty or over-long; None otherwise."""
    value = request.headers.get(name)
    if not value or request.headers.count(name) != 1 or len(value) > MAX_SIGNATURE_HEADER:
        return None
    return value


def to_bytes(text: str) -> bytes:
    """Any text as bytes: header values arrive decoded as latin-1 and may hold anything."""
    return text.encode("utf-8", "surrogatepass")


def is_one_of(presented: str, expected: Iterable[str]) -> bool:
    """Constant-time comparison with each, on bytes (on `str` it raises for non-ASCII text); all are tried, whichever matches."""
    raw, found = to_bytes(presented), False
    for one in expected:
        found |= hmac.compare_digest(raw, to_bytes(one))
    return found


def usable(secrets: Sequence[str]) -> list[bytes]:
    """The secrets that can sign: an empty one matches what anybody can compute, so it never counts."""
    return [to_bytes(secret) for secret in secrets if secret.strip()]


def check_text_secret(secret: str) -> None:
    """Raises ValueError for a secret that is empty or carries white space at an end (a copied line break)."""
    if not secret.strip():
        raise ValueError("the secret is empty, so anyone could sign; set a secret")
    if secret != secret.strip():
        raise ValueError("the secret starts or ends with white space; remove the line break or space that was copied with it")


def timestamp_problem(raw: str | None, now: float, *, tolerance: float = TOLERANCE_SECONDS, per_second: int = 1) -> str | None:
    """Why a time stamp header does not count, or None when it does. `per_second` is its unit: 1 = seconds, 1000 = milliseconds."""
    if raw is None:
        return "the timestamp header is missing, empty or sent twice"
    if not (raw.isascii() and raw.isdigit()) or len(raw) > MAX_TIMESTAMP_DIGITS:
        return "the timestamp is not a whole number"
    difference = abs(int(raw) - now * per_second) / per_second
    if difference > tolerance:
        return f"the timestamp is {difference:.0f} s from this server's clock; at most {tolerance:g} s are allowed"
    return None
