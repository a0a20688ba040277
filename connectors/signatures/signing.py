"""The senders' side of the schemes: the headers that a provider would send for a body. Only for deliveries of one's own making.

A scheme of another package joins in by a method `sign_request(request, secret, now) -> Mapping[str, str]` of its own.
"""

from __future__ import annotations

import base64
from typing import Final

from standardwebhooks.webhooks import hmac_data

from connectors.delivery import IngressRequest, SignatureScheme
from connectors.signatures.checks import to_bytes
from connectors.signatures.hubspot import TIMESTAMP_HEADER, V3_HEADER, HubSpot, sign_v3
from connectors.signatures.plain import HmacSha256, Token, Unsigned
from connectors.signatures.standard_webhooks import SHARED_KEY, StandardWebhooks, key_of

MESSAGE_ID: Final = "webhook-id"


class CannotSign(ValueError):
    """Nobody but the provider can sign for this endpoint; the message says why."""


def signed_headers(scheme: SignatureScheme, request: IngressRequest, secret: str, now: float) -> dict[str, str]:
    """The signature headers of `request`, whose own headers, URL and body stay as they are. `now` is Unix time in seconds.

    Raises CannotSign for a scheme whose signing is not known here, and for a secret that only verifies.
    """
    own = getattr(scheme, "sign_request", None)
    if own is not None:
        return dict(own(request, secret, now))
    match scheme:
        case Unsigned():
            return {}
        case HmacSha256():
            return {scheme.header: scheme.sign(request.body, to_bytes(secret))}
        case Token():
            return {scheme.header: scheme.prefix + secret}
        case HubSpot():
            stamp = str(int(now * 1000))
            signature = sign_v3(request, to_bytes(secret), stamp)
            return {V3_HEADER: signature, TIMESTAMP_HEADER: stamp}
        case StandardWebhooks():
            return _standard_webhooks(request, secret, int(now))
    raise CannotSign(f"Headrace can check signatures of the scheme {scheme.name}, but cannot create them")


def _standard_webhooks(request: IngressRequest, secret: str, now: int) -> dict[str, str]:
    version, key = key_of(secret)
    if version != SHARED_KEY:
        raise CannotSign("the secret is a public key (whpk_…); only the provider has the private key to sign with")
    message_id = request.headers.get(MESSAGE_ID)
    if not message_id:
        raise CannotSign(f"the scheme signs the message id; add the header {MESSAGE_ID}")
    mac = hmac_data(key, to_bytes(f"{message_id}.{now}.") + request.body)
    signature = f"{SHARED_KEY},{base64.b64encode(mac).decode('ascii')}"
    return {MESSAGE_ID: message_id, "webhook-timestamp": str(now), "webhook-signature": signature}
