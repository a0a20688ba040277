"""Signature schemes: how a provider proves that a delivery is its own. Each implements `connectors.delivery.SignatureScheme`.

A check never raises for anything that a caller can send, compares bytes in constant time, and accepts any live secret (rotation). It is
a pure function: no database, no clock of its own. Begin reading at `checks`, then at the scheme; `signing` makes signatures for test
deliveries. May import `connectors.delivery` alone: packs get their schemes through `connectors.pack`, which stands above.
"""

from connectors.signatures.checks import TOLERANCE_SECONDS
from connectors.signatures.hubspot import hubspot, hubspot_v3
from connectors.signatures.plain import hmac_sha256, token, unsigned
from connectors.signatures.standard_webhooks import standard_webhooks

__all__ = ["TOLERANCE_SECONDS", "hmac_sha256", "hubspot", "hubspot_v3", "standard_webhooks", "token", "unsigned"]
