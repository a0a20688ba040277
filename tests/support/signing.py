"""Signs deliveries as the providers do, independently of the code under test."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import UTC, datetime

from standardwebhooks import Webhook

STANDARD_SECRET = "whsec_" + base64.b64encode(b"standard-webhooks-test-secret-00").decode()


def hmac_hex(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def hmac_base64(body: bytes, secret: str) -> str:
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


def github(body: bytes, secret: str, *, event: str = "push", delivery: str | None = None) -> dict[str, str]:
    headers = {"X-Hub-Signature-256": "sha256=" + hmac_hex(body, secret), "X-GitHub-Event": event}
    return headers | ({"X-GitHub-Delivery": delivery} if delivery is not None else {})


def hubspot_v3(body: bytes, secret: str, url: str, *, method: str = "POST", at: float | None = None) -> dict[str, str]:
    stamp = str(int((time.time() if at is None else at) * 1000))
    content = method.encode() + url.encode() + body + stamp.encode()
    return {"X-HubSpot-Signature-v3": hmac_base64(content, secret), "X-HubSpot-Request-Timestamp": stamp}


def hubspot_v2(body: bytes, secret: str, url: str, *, method: str = "POST") -> dict[str, str]:
    signature = hashlib.sha256(secret.encode() + method.encode() + url.encode() + body).hexdigest()
    return {"X-HubSpot-Signature": signature, "X-HubSpot-Signature-Version": "v2"}


def hubspot_v1(body: bytes, secret: str) -> dict[str, str]:
    return {"X-HubSpot-Signature": hashlib.sha256(secret.encode() + body).hexdigest(), "X-HubSpot-Signature-Version": "v1"}


def standard_webhooks(
    body: bytes, secret: str = STANDARD_SECRET, *, message_id: str = "msg_1", at: float | None = None, family: str = "webhook"
) -> dict[str, str]:
    """By the reference library. `family` is `webhook` or `svix`."""
    stamp = int(time.time() if at is None else at)
    signature = Webhook(secret).sign(message_id, datetime.fromtimestamp(stamp, UTC), body.decode())
    return {f"{family}-id": message_id, f"{family}-timestamp": str(stamp), f"{family}-signature": signature}


def generic(body: bytes, secret: str, *, header: str = "X-Signature", prefix: str = "") -> dict[str, str]:
    return {header: prefix + hmac_hex(body, secret)}
