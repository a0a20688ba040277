"""A worker of a real gunicorn is killed at every commit point of a request, so that its sender hears nothing and sends it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.models import UnverifiedDelivery
from tests.faults.children import Nursery
from tests.faults.orders import SIDES, Side
from tests.faults.world import World, item_a_delivery
from tests.support import factories
from tests.support.web import Web, serving

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

PATH = "/ingress/default/main"


@pytest.fixture
def world(nursery: Nursery) -> World:
    return World(nursery, item_a_delivery())


@pytest.fixture
def web(world: World, tmp_path: Path) -> Iterator[Web]:
    """Loaded before it forks: a new worker costs milliseconds in place of seconds."""
    with serving(tmp_path, "tests.faults.wsgi", "--preload") as made:
        yield made


def post(web: Web, body: bytes, fault: str = "", path: str = PATH) -> tuple[int, bool] | None:
    """Status and whether it was a duplicate; None: the connection broke off before an answer."""
    headers = {"Content-Type": "application/json"} | ({"X-Fault": fault} if fault else {})
    try:
        reply = web.post(path, body, headers)
    except (IndexError, ConnectionError):
        return None
    return reply.status, reply.json.get("duplicate", False)


def kills(web: Web, side: Side, body: bytes, path: str = PATH) -> int:
    """Send it with a kill at the first commit point, then at the second, and so on until it is answered; number of kills."""
    count = 0
    while post(web, body, f"{count + 1} {side}", path) is None:
        count += 1
    return count


def test_what_was_committed_before_the_answer_is_a_duplicate_when_it_comes_again(world: World, web: Web) -> None:
    for side in SIDES:
        body = json.dumps(world.item(world.contact())).encode()
        world.receipts["routed"] += 1
        assert post(web, body, f"1 {side}") is None
        assert post(web, body) == ((202, False) if side == "before" else (200, True))
        assert kills(web, side, body) == 1, "the INSERT that finds the first one"
        assert post(web, body) == (200, True)
        other = json.dumps({**json.loads(body), "another": "body"}).encode()
        world.receipts["conflict"] += 1
        assert kills(web, side, other) == 2
        assert post(web, other) == (409, False)
    world.go_on()
    world.assert_whole()


def test_a_delivery_that_did_not_verify_is_held_once_for_each_time_that_it_came(world: World, web: Web) -> None:
    factories.endpoint(factories.install("github"), "code")
    for side in SIDES:
        held = UnverifiedDelivery.objects.count()
        assert kills(web, side, b"{}", "/ingress/default/code") == 2, "what is too old goes, then this one is held"
        assert UnverifiedDelivery.objects.count() == held + (1 if side == "before" else 2)
    world.go_on()
    world.assert_whole()
