"""The common schemes: an HMAC of the raw body in a header, a shared token in a header, none."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from connectors.delivery import IngressRequest, Verdict
from connectors.signatures.checks import VERIFIED, check_text_secret, is_one_of, only_header, refused, usable

Encoding = Literal["hex", "base64"]


@dataclass(frozen=True, slots=True)
class HmacSha256:
    """HMAC-SHA256 of the raw body, keyed with the secret's UTF-8 bytes. Hex is lower case, as every provider sends it."""

    header: str
    encoding: Encoding = "hex"
    prefix: str = ""
    name: str = "hmac-sha256"
    needs_secret: bool = True

    @property
    def headers(self) -> tuple[str, ...]:
        return (self.header,)

    def sign(self, body: bytes, secret: bytes) -> str:
        """The header value that the provider sends for this body."""
        mac = hmac.digest(secret, body, "sha256")
        return self.prefix + (mac.hex() if self.encoding == "hex" else base64.b64encode(mac).decode("ascii"))

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:  # noqa: ARG002  # signs no time
        presented = only_header(request, self.header)
        if presented is None:
            return refused(f"the header {self.header} is missing, empty, too long or sent twice")
        keys = usable(secrets)
        if not keys:
            return refused("the endpoint has no valid secret")
        if is_one_of(presented, (self.sign(request.body, key) for key in keys)):
            return VERIFIED
        return refused(f"no secret of the endpoint matches the signature in {self.header}")

    def check_secret(self, secret: str) -> None:
        check_text_secret(secret)


def hmac_sha256(*, header: str, encoding: Encoding = "hex", prefix: str = "", name: str = "hmac-sha256") -> HmacSha256:
    """Scheme "HMAC-SHA256 of the body in `header`", e.g. `prefix="sha256="`. Raises ValueError for a wrong encoding or header."""
    if encoding not in ("hex", "base64"):
        raise ValueError(f"encoding must be hex or base64, not {encoding!r}")
    return HmacSha256(_header_name(header), encoding, prefix, name)


@dataclass(frozen=True, slots=True)
class Token:
    """A shared secret sent as it is in a header, e.g. `Authorization` with prefix `Bearer `."""

    header: str
    prefix: str = ""
    name: str = "token"
    needs_secret: bool = True

    @property
    def headers(self) -> tuple[str, ...]:
        return (self.header,)

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:  # noqa: ARG002  # signs no time
        presented = only_header(request, self.header)
        if presented is None:
            return refused(f"the header {self.header} is missing, empty, too long or sent twice")
        keys = [secret for secret in secrets if secret.strip()]
        if not keys:
            return refused("the endpoint has no valid secret")
        if is_one_of(presented, (self.prefix + key for key in keys)):
            return VERIFIED
        return refused(f"the header {self.header} does not contain a valid token")

    def check_secret(self, secret: str) -> None:
        check_text_secret(secret)
        if not secret.isascii() or not secret.isprintable():
            raise ValueError("the token contains characters that cannot be sent in a header; use printable ASCII")


def token(*, header: str, prefix: str = "") -> Token:
    """Scheme "the secret itself in `header`, after `prefix`". Raises ValueError for a wrong header name."""
    return Token(_header_name(header), prefix)


@dataclass(frozen=True, slots=True)
class Unsigned:
    """No proof at all: only for senders on a trusted network."""

    name: str = "unsigned"
    needs_secret: bool = False
    headers: tuple[str, ...] = ()

    def verify(self, request: IngressRequest, secrets: Sequence[str], now: float) -> Verdict:  # noqa: ARG002  # nothing to check
        return VERIFIED

    def check_secret(self, secret: str) -> None:  # noqa: ARG002  # whatever it is
        raise ValueError("this endpoint checks no signature, so a secret has no effect; remove the secret or choose a signature")


def unsigned() -> Unsigned:
    """Scheme "anybody may deliver"."""
    return Unsigned()


def _header_name(header: str) -> str:
    if not header or not all(c.isascii() and (c.isalnum() or c == "-") for c in header):
        raise ValueError(f"header must be the name of an HTTP header, not {header!r}")
    return header
