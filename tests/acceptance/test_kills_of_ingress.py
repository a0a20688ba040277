"""What receives, drains the spool and routes is killed at every commit point: each delivery is one receipt, each item its events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import time_ns
from typing import Any

import pytest

from connectors.delivery import Headers, IngressRequest
from connectors.ingress import endpoint_facts
from connectors.ingress.receipt_draft import draft_of
from connectors.ingress.spool import files, spooling
from connectors.ingress.spool.spooled import identified
from projection.models import Event
from tests.faults.children import Command, Nursery
from tests.faults.kills import EveryPoint, rooms
from tests.faults.world import AT_ONCE, ROUTE, World, item_a_delivery

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]


def test_what_receives(nursery: Nursery, tmp_path: Path) -> None:
    """Its provider hears nothing of what was under way, and sends everything again."""
    world = World(nursery, item_a_delivery())
    file = tmp_path / "deliveries.jsonl"
    receive = ("receive", "main", str(file))

    def deliveries() -> Sequence[Command]:
        one, two = world.item(world.contact()), world.item(world.contact())
        bodies = [one, two, one, {**one, "another": "body under a known id"}]
        file.write_text("".join(json.dumps(body) + "\n" for body in bodies))
        world.receipts += Counter(routed=2, conflict=1)
        return [receive]

    kills = EveryPoint(nursery, deliveries)
    for _ in kills:
        second = nursery.run(receive)
        assert second.ended == {"code": 1}, "a conflict is told each time"
        assert second.answers[0]["received"] + second.answers[0]["duplicates"] == 3
        world.go_on()
        world.assert_whole()
    assert (rooms(kills.points), kills.count) == ({"managers.insert_receipt"}, 2 * 5)


def test_what_drains_the_spool(nursery: Nursery, tmp_path: Path, settings: Any) -> None:
    """Batches of two, from one file: a record that is inserted again meets its own identity."""
    settings.HEADRACE_SPOOL_DIR = tmp_path / "spool"
    own = {"HEADRACE_SPOOL_DIR": str(tmp_path / "spool")}
    world = World(nursery, item_a_delivery())
    endpoint = endpoint_facts.load(("default", "main"))
    assert endpoint is not None
    drain = ("spool", "drain")

    def spooled() -> Sequence[Command]:
        bodies = [json.dumps(world.item(world.contact())).encode() for _ in range(3)]
        for body in [*bodies, bodies[0], b"no JSON, and no id"]:
            request = IngressRequest("POST", endpoint.url, Headers({}), body)
            outcome = spooling.spool(endpoint, identified(draft_of(endpoint, request)), time_ns() // 1000)
            assert outcome.code == spooling.SPOOLED
        spooling.forget()
        world.receipts += Counter(routed=3, rejected=1)
        return [drain]

    kills = EveryPoint(nursery, spooled, {"settings": own, "constants": {"connectors.ingress.spool.drain.BATCH": 2}})
    for _ in kills:
        nursery.succeed(drain, settings=own)
        assert files.is_empty()
        world.go_on()
        world.assert_whole()
    assert rooms(kills.points) == {"drain._store"}


def test_what_routes(nursery: Nursery) -> None:
    """Batches of two receipts: fresh items, known ones, an unreadable body, a route that takes it and no route, and one at fault."""
    world = World(nursery)
    world.ingress.route("poison", on=("poison",), kind="poison", target_lane="x", flow="atomic.write")

    def pending() -> Sequence[Command]:
        one, two = world.contact(), world.contact()
        known = world.item(one)
        send = world.ingress.send
        send(known)
        send(world.item(two), known)
        send(known, world.item(one, outcome="retry"))
        world.ingress.send_body(b"no JSON")
        send(world.item(two, kind="poison"))
        send(world.item(two, kind="nobody's"))
        world.receipts += Counter(routed=4, rejected=1, quarantined=1)
        return [[*ROUTE, "--batch", "2"]]

    sizes = {"connectors.routing.router.QUARANTINE_AFTER": 1, **AT_ONCE}
    kills = EveryPoint(nursery, pending, {"constants": sizes})
    for _ in kills:
        world.go_on(sizes)
        world.assert_whole()
    assert rooms(kills.points) == {"admit", "defer"}
    ordinals = sorted(Event.objects.values_list("enqueue_ordinal", flat=True))
    assert ordinals == list(range(1, len(ordinals) + 1))
