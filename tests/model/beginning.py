"""Where each history begins: two namespaces with the same pack and routes, nothing delivered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from connectors import models
from connectors.configuration import packs, routes
from connectors.configuration.routes import RouteDraft
from connectors.ingress import endpoint_facts
from projection import flows
from projection.admission import activation
from projection.facts import PER_EVENT, PROJECTION, RetryPolicy, RouteFacts
from tests.model.reference import Reference
from tests.model.world import NAMESPACES, World
from tests.support import factories
from tests.support.deliveries import SETTINGS, forget_caches

START = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
STEADY = RetryPolicy(base=0, attempts=3)
"""Exactly the floor of one second between attempts: no jitter to compare."""
IMPATIENT = replace(STEADY, give_up_after=10)


def _draft(key: str, kinds: tuple[str, ...], kind: str, flow: str, **more: Any) -> RouteDraft:
    more = {"mode": PER_EVENT, "retry": STEADY, **more}
    return RouteDraft(key=key, pack_name="generic", provider_kinds=kinds, event_kind=kind, flow=flow, **more)


DRAFTS = (
    _draft("contact", ("changed", "both"), "contact.changed", "test.record", mode=PROJECTION),
    _draft("mirror", ("changed",), "contact.changed", "other.record", mode=PROJECTION, queue_class="bulk", retry=IMPATIENT),
    _draft("settled", ("edited", "both"), "contact.edited", "test.settle", mode=PROJECTION, settle_seconds=5.0),
    _draft("note", ("noted", "both"), "contact.noted", "test.note", queue_class="interactive", retry=IMPATIENT),
    _draft("pay", ("paid",), "invoice.paid", "test.pay", target_lane="ledger:{type}"),
    _draft("book", ("paid",), "invoice.booked", "other.book", target_lane="ledger:contact", retry=replace(STEADY, attempts=1)),
)
"""Two projections in one lane, one of them settling; a second companion on the same events and in the same replay scope; a per-event
route in the projections' lane; two companions that share a target lane, whatever the source. Two of them give up after 10 s."""

CONFIGURED = (models.Namespace, models.Pack, models.Endpoint, models.Route)
FILLED = (
    "_System_ConnectorEvent",
    "_System_ConnectorWorkItem",
    "_System_ConnectorWorkFailure",
    "_System_ConnectorLaneHold",
    "_System_ConnectorReceipt",
    "_System_ConnectorAudit",
)


@dataclass(frozen=True)
class Beginning:
    """The configured, empty, activated database that each sequence starts from."""

    rows: dict[Any, list[Any]]
    facts: tuple[RouteFacts, ...]
    packs: tuple[models.Pack, ...]

    def world(self) -> World:
        """Everything as it was; cheap: a handful of statements."""
        with connection.cursor() as cursor:
            for table in FILLED:
                cursor.execute(f"DELETE FROM `{table}`")
        for model, rows in self.rows.items():
            model.objects.all().delete()
            model.objects.bulk_create(rows)
        if not activation.is_activated():
            activation.activate("model")
        endpoints = {name: endpoint_facts.load((name, "main")) for name in NAMESPACES}
        drafts = {(name, draft.key): draft for name in NAMESPACES for draft in DRAFTS}
        world = World(Reference(START), {name: found for name, found in endpoints.items() if found}, drafts=drafts)
        world.set_clock(START)
        for pack in self.packs:
            world.adopt_pack(pack)
        for facts in self.facts:
            world.adopt(facts)
        return world


def begin() -> Beginning:
    """Install the packs, their endpoints and the routes."""
    forget_caches()
    installed = [packs.install(name, "generic", actor="model", settings=SETTINGS) for name in NAMESPACES]
    for pack in installed:
        factories.endpoint(pack)
    facts = [routes.publish(name, draft, actor="model").route_facts for name in NAMESPACES for draft in DRAFTS]
    return Beginning({model: list(model.objects.all()) for model in CONFIGURED}, tuple(facts), tuple(installed))


def never_called(_: object) -> None:
    raise AssertionError("the model's flows are not executed: the test ends each attempt itself")


def register_flows() -> None:
    for name in {draft.flow for draft in DRAFTS}:
        flows.flow(name)(never_called)


def forget_flows() -> None:
    for name in {draft.flow for draft in DRAFTS}:
        flows.forget(name)
    activation.forget()
    with connection.cursor() as cursor:
        cursor.execute("SET TIMESTAMP = DEFAULT")
