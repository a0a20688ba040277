"""Deliveries for tests of the protocol: contact changes in a plain JSON shape, received and routed through the product's own path."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connectors import models
from connectors.configuration import packs
from connectors.delivery import Headers, IngressRequest, Outcome
from connectors.ingress import endpoint_facts
from connectors.ingress.receive import receive
from connectors.registry import installed_packs
from connectors.routing import router
from connectors.routing.router import RouteReport
from projection.admission import activation
from projection.facts import RouteFacts
from projection.models import Event, WorkItem
from tests.support import factories

SETTINGS = {
    "signature": {"kind": "none"},
    "items": "events",
    "delivery_id": "id",
    "kind": "kind",
    "source_type": "type",
    "source_id": "contact",
    "lane": "lane",
    "time": "at",
}
_numbers = itertools.count(1)


@dataclass
class Ingress:
    """An installed pack with an open endpoint in an activated database, and how to send it events."""

    pack: models.Pack
    slug: str

    def route(self, key: str = "contact", **options: Any) -> RouteFacts:
        """Publish a route; default: a projection without settling to the flow `test.record`."""
        return factories.route(
            self.pack, key, **{"mode": "projection", "flow": "test.record", "kind": "contact.changed", **options}
        )

    def send(self, *events: dict[str, Any]) -> Outcome:
        """One delivery with these events, stored as HTTP would."""
        return self.send_body(json.dumps({"events": events}).encode())

    def send_body(self, body: bytes) -> Outcome:
        """One delivery with exactly these bytes."""
        facts = endpoint_facts.load((self.pack.namespace, self.slug))
        assert facts is not None
        return receive(
            facts, IngressRequest("POST", "https://hooks.example.com/", Headers({"content-type": "application/json"}), body)
        )

    def upgrade(self) -> Ingress:
        """The pack upgraded in place, its routes republished for the new incarnation."""
        return Ingress(packs.upgrade(self.pack.namespace, self.pack.name, actor="test").pack, self.slug)

    def admit(self, *events: dict[str, Any]) -> RouteReport:
        """Send and route."""
        self.send(*events)
        return router.drain_receipts(self.pack.namespace)


def open_ingress(*, slug: str = "main", in_namespace: str = factories.DEFAULT_NAMESPACE) -> Ingress:
    """A fresh pack and endpoint; activates the protocol."""
    forget_caches()
    activation.activate("test")
    pack = factories.install("generic", settings=SETTINGS, in_namespace=in_namespace)
    factories.endpoint(pack, slug)
    return Ingress(pack, slug)


def forget_caches() -> None:
    """What processes remember for seconds, tests change at once."""
    installed_packs.of.forget()
    activation.forget()


def change(
    contact: str | int = 1, *, id: str | None = None, lane: str | None = "", kind: str = "changed", **more: Any
) -> dict[str, Any]:
    """One event about a contact. `lane` empty: `contact:<id>`; None: the item names no lane."""
    number = next(_numbers)
    return {
        "id": id or f"delivery-{number}",
        "kind": kind,
        "type": "contact",
        "contact": str(contact),
        "lane": f"contact:{contact}" if lane == "" else lane,
        "n": number,
        **more,
    }


def generations(contact: str | int = 1) -> list[WorkItem]:
    """Work items of a contact's source lane, oldest first."""
    return list(WorkItem.objects.filter(source_lane=f"contact:{contact}").order_by("id"))


def states(contact: str | int = 1) -> list[str]:
    return [item.state for item in generations(contact)]


def ordinals(contact: str | int = 1) -> list[int]:
    """Ordinals of the contact's events, in order."""
    return list(
        Event.objects.filter(source_id=str(contact), replay_of_event_id=None)
        .order_by("enqueue_ordinal")
        .values_list("enqueue_ordinal", flat=True)
    )


def changes(contact: str | int, count: int) -> Sequence[dict[str, Any]]:
    return [change(contact) for _ in range(count)]
