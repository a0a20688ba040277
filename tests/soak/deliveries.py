"""Deliveries of four providers, written by hand in their documented shapes, and what must come of them."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.acceptance import hubspot_shapes
from tests.support import signing

SECRET: Final = "a secret of the four providers"
HOST: Final = "https://hooks.example.com"
CONFIGURATION: Final = """
[packs.hubspot.endpoint.crm]
public_url = "https://hooks.example.com"
secrets = ["env:SECRET"]
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
[packs.standard_webhooks.endpoint.billing]
secrets = ["env:STANDARD_SECRET"]
[packs.generic]
settings = { delivery_id = "id", source_type = "'order'", source_id = "order.id" }
[packs.generic.endpoint.shop]
secrets = ["env:SECRET"]

[routes.contact]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
settle = "200ms"
flow = "soak.atomic"
[routes.record]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
flow = "record_table"
[routes.push]
pack = "github"
on = ["push"]
kind = "code.pushed"
mode = "per_event"
flow = "soak.plain"
[routes.issue]
pack = "github"
on = ["issues.*"]
kind = "issue.changed"
mode = "projection"
flow = "soak.tail"
[routes.invoice]
pack = "standard_webhooks"
on = ["invoice.*"]
kind = "invoice.changed"
mode = "projection"
flow = "soak.batch"
[routes.order]
pack = "generic"
on = ["order.*"]
kind = "order.changed"
mode = "per_event"
flow = "soak.atomic"
[routes.poison]
pack = "generic"
on = ["poison"]
kind = "order.poisoned"
mode = "per_event"
flow = "soak.poison"
retry = { base = "1s", factor = 1, attempts = 3 }
"""
ENDPOINTS: Final = ("crm", "code", "billing", "shop")
HUBSPOT_ROUTES: Final = ("contact", "record")
POISON: Final = "poison"
"""Route of what kills the process that runs it."""
ROUTES: Final = (*HUBSPOT_ROUTES, "push", "issue", "invoice", "order", POISON)
EXACTLY_ONCE: Final = ("contact", "issue", "invoice", "order")
AT_LEAST_ONCE: Final = ("push",)
"""Routes whose flows keep account; `record` is read from the live records."""
SOURCES: Final = {"crm": 400, "code": 40, "billing": 300, "shop": 600}
WEIGHTS: Final = {"crm": 3, "code": 3, "billing": 2, "shop": 2}
PUSHES: Final = 0.5
"""Share of GitHub's deliveries; the others are about issues."""
POISON_AFTER: Final = 100
"""Deliveries before the first poison."""
POISON_EVERY: Final = 10_000
LARGEST_BATCH: Final = 5
LARGEST_TEXT: Final = 4000

Parts = tuple[bytes, dict[str, str]]


@dataclass(slots=True)
class Delivery:
    """What a provider wants to be rid of. `facts`: number → source, for each of `routes`; `make(try)`: body and headers, signed then."""

    endpoint: str
    routes: tuple[str, ...]
    facts: Mapping[int, str]
    make: Callable[[int], Parts] = field(repr=False)

    @property
    def path(self) -> str:
        return f"/ingress/default/{self.endpoint}"


class Mix:
    """Makes deliveries at random, reproducibly for a seed: some sources are much busier than others."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = itertools.count(1)
        self._made = itertools.count()

    def next(self) -> Delivery:
        if next(self._made) % POISON_EVERY == POISON_AFTER:
            return self._poison()
        endpoint = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        made: Delivery = getattr(self, f"_{endpoint}")()
        return made

    def _source(self, endpoint: str) -> int:
        return int(SOURCES[endpoint] * self._chance.random() ** 2) + 1

    def _text(self) -> str:
        return "text – " * int(self._chance.random() ** 3 * LARGEST_TEXT / 7)

    def _crm(self) -> Delivery:
        facts = {next(self._numbers): str(self._source("crm")) for _ in range(self._chance.randint(1, LARGEST_BATCH))}
        names = {number: self._chance.choice(("firstname", "phone", "lifecyclestage")) for number in facts}

        def make(turn: int) -> Parts:
            """HubSpot counts its tries in the body, so that each has bytes of its own."""
            events = [
                hubspot_shapes.changed(number, "contact", int(source), names[number], str(number)) | {"attemptNumber": turn}
                for number, source in facts.items()
            ]
            body = hubspot_shapes.body(*events)
            return body, signing.hubspot_v3(body, SECRET, f"{HOST}/ingress/default/crm")

        return Delivery("crm", HUBSPOT_ROUTES, facts, make)

    def _code(self) -> Delivery:
        number, source = next(self._numbers), self._source("code")
        if self._chance.random() < PUSHES:
            event, route = "push", "push"
            payload = {"ref": f"refs/heads/b{source}", "after": f"{number:040x}", "head_commit": {"message": self._text()}}
        else:
            event, route = "issues", "issue"
            payload = {"action": "edited", "issue": {"id": source, "number": source, "body": self._text()}}
        body = _json({"n": number, "repository": {"id": 7}, **payload})
        delivery = f"gh-{number}"
        return Delivery(
            "code", (route,), {number: str(source)}, lambda _: (body, signing.github(body, SECRET, event=event, delivery=delivery))
        )

    def _billing(self) -> Delivery:
        number, source = next(self._numbers), f"inv_{self._source('billing')}"
        data = {"id": source, "text": self._text()}
        body = _json({"type": "invoice.paid", "timestamp": "2026-11-29T10:00:00Z", "n": number, "data": data})
        return Delivery(
            "billing", ("invoice",), {number: source}, lambda _: (body, signing.standard_webhooks(body, message_id=f"msg_{number}"))
        )

    def _shop(self) -> Delivery:
        number, source = next(self._numbers), f"o{self._source('shop')}"
        body = _json({"id": f"shop-{number}", "type": "order.changed", "n": number, "order": {"id": source, "note": self._text()}})
        return Delivery("shop", ("order",), {number: source}, lambda _: (body, signing.generic(body, SECRET)))

    def _poison(self) -> Delivery:
        number = next(self._numbers)
        body = _json({"id": f"shop-{number}", "type": POISON, "n": number, "order": {"id": f"p{number}"}})
        return Delivery("shop", (POISON,), {number: f"p{number}"}, lambda _: (body, signing.generic(body, SECRET)))


def _json(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False).encode()
