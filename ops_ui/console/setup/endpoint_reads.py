"""What the pages of endpoints read: each a row of an index or a bounded number of them. Never the value of a secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from connectors import secrets
from connectors.configuration import stored_secrets
from connectors.configuration.stored_secrets import LiveSecret
from connectors.ingress.endpoint_facts import keeps_unverified, public_base
from connectors.ingress.paths import ingress_path
from connectors.ingress.unverified import KEPT_SECONDS, MOST_KEPT
from connectors.models import Endpoint, Receipt, UnverifiedDelivery
from ops_ui.models import SignatureFailures

NEWEST_RECEIPTS: Final = 10
NEWEST_UNVERIFIED: Final = 5
LARGE: Final = ("body", "headers", "verdicts", "url")
"""Columns of a receipt that no list needs."""


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint as pages show it. `unreadable`: why its secrets cannot be told about."""

    endpoint: Endpoint
    url: str
    """Where the provider posts to; the path alone where no public URL is known."""
    live: tuple[LiveSecret, ...]
    keeps_unverified: bool
    unreadable: str = ""

    @property
    def has_address(self) -> bool:
        return not self.url.startswith("/")

    @property
    def secrets(self) -> str:
        """In words, without a value."""
        if self.unreadable:
            return "unreadable: no key in HEADRACE_ENCRYPTION_KEYS can decrypt it"
        return f"{len(self.live)} valid" if self.live else "none"


def row(endpoint: Endpoint, now: datetime) -> EndpointRow:
    """No query."""
    kept = keeps_unverified(endpoint.unverified_policy, endpoint.unverified_until, now)
    url = public_base(endpoint.public_url) + ingress_path(endpoint.namespace, endpoint.slug)
    try:
        return EndpointRow(endpoint, url, tuple(stored_secrets.live(endpoint.secrets, now)), kept)
    except (secrets.SecretsUnreadable, secrets.NoEncryptionKey) as error:
        return EndpointRow(endpoint, url, (), kept, str(error))


def newest_receipts(endpoint_id: int, most: int = NEWEST_RECEIPTS) -> list[Receipt]:
    """Index ix_receipt_endpoint."""
    return list(Receipt.objects.defer(*LARGE).filter(endpoint_id=endpoint_id).order_by("-id")[:most])


@dataclass(frozen=True, slots=True)
class Kept:
    """What an endpoint holds because it did not verify: how many (at most 200 are held), and the newest."""

    count: int
    newest: Sequence[UnverifiedDelivery]


def kept(endpoint_id: int, now: datetime) -> Kept:
    """Index ix_unverified_endpoint. One query."""
    since = now - timedelta(seconds=KEPT_SECONDS)
    rows = UnverifiedDelivery.objects.only("id", "endpoint_id", "reason", "received_at", "admitted_receipt_id")
    held = rows.filter(endpoint_id=endpoint_id, received_at__gte=since).order_by("-received_at", "-id")[:MOST_KEPT]
    waiting = [one for one in held if one.admitted_receipt_id is None]
    return Kept(len(waiting), waiting[:NEWEST_UNVERIFIED])


def newest_failure(endpoint_id: int, since: datetime) -> UnverifiedDelivery | None:
    """The newest delivery since then that did not verify and was kept. Index ix_unverified_endpoint."""
    rows = UnverifiedDelivery.objects.only("id", "endpoint_id", "reason", "received_at", "admitted_receipt_id")
    return rows.filter(endpoint_id=endpoint_id, received_at__gte=since).order_by("-received_at", "-id").first()


def failures(endpoint: Endpoint, since: datetime) -> int:
    """Deliveries since then that did not verify, kept or not, to the minute. Index ux_signature_failures; a row a minute."""
    name = f"{endpoint.namespace}/{endpoint.slug}"
    rows = SignatureFailures.objects.filter(endpoint=name, minute__gte=since.replace(second=0, microsecond=0))
    return sum(rows.values_list("failures", flat=True))
