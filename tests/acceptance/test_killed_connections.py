"""The server ends connections (KILL): idle ones, in the middle of a flow, before each commit. Nothing is lost or doubled."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep

import pytest
from django.db import connection

from projection.models import Worker, WorkFailure, WorkItem
from tests.faults.children import Command, Nursery
from tests.faults.kills import EveryPoint, rooms
from tests.faults.orders import DROP, Side
from tests.faults.world import AT_ONCE, FORMS, ROUTE, SETTINGS, WORK, World, item_a_delivery
from tests.support.web import serving

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 30.0
BEFORE: tuple[Side] = ("before",)
"""Behind a point the connection is as good as idle."""


def until(condition: Callable[[], object], what: str) -> None:
    """Poll what other processes do; they send no signal to a test."""
    ends = monotonic() + PATIENCE_SECONDS
    while not condition():
        assert monotonic() < ends, f"waited in vain until {what}"
        sleep(0.02)


def end_all_connections() -> int:
    """KILL every connection to this database but our own; how many."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()")
        ids = [row[0] for row in cursor.fetchall()]
        for one in ids:
            cursor.execute(f"KILL {one}")
    return len(ids)


def test_idle_loops_and_a_web_server_go_on_with_fresh_ones(nursery: Nursery, tmp_path: Path) -> None:
    world = World(nursery, item_a_delivery())
    loops = [nursery.start(command) for command in (ROUTE[:1], WORK[:1])]
    until(lambda: Worker.objects.count() == len(loops), "both loops run")
    with serving(tmp_path) as web:
        for _ in range(2):
            body = json.dumps(world.item(world.contact())).encode()
            world.receipts["routed"] += 1
            reply = web.post("/ingress/default/main", body, {"Content-Type": "application/json"})
            assert reply.status == 202, "an idle connection that is gone is no outage"
            until(lambda: WorkItem.objects.filter(state="processed").count() == len(world.events), "it was executed")
            assert end_all_connections() >= len(loops) + 1
    for loop in loops:
        loop.send(signal.SIGTERM)
        assert nursery.wait(loop).ended == {"code": 0}, loop.said
        assert "Traceback" not in loop.said
    assert not Worker.objects.exists(), "each took its row away"
    world.go_on()
    world.assert_whole()


@pytest.mark.parametrize("items", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_in_the_middle_of_a_flow(nursery: Nursery, form: str, items: int) -> None:
    """Whoever runs it goes on by itself: with the flow again, or with what comes after it. An atomic one is blamed for nothing."""
    world = World(nursery, forms=(form,))
    world.deliver(*(world.contact() for _ in range(items)), outcome="drop")
    world.route()
    worker = nursery.succeed(WORK, settings=SETTINGS, constants=AT_ONCE)
    assert "Traceback" not in worker.said
    world.assert_whole()
    if form == "atomic":
        assert set(WorkItem.objects.values_list("attempts", flat=True)) == {1}
        assert not WorkFailure.objects.exists()


def test_at_every_commit_point_of_the_router_and_of_a_worker(nursery: Nursery) -> None:
    world = World(nursery)

    def work() -> Sequence[Command]:
        left, again = world.contact(), world.contact()
        world.deliver(left)
        world.route()
        world.abandon()
        world.deliver(left)
        world.deliver(again, outcome="retry")
        return [ROUTE, WORK]

    drops = EveryPoint(nursery, work, {"settings": SETTINGS, "constants": AT_ONCE}, DROP, BEFORE)
    for child in drops:
        assert child.ended["code"] in (0, 2), child.said
        assert "Traceback" not in child.said
        world.go_on()
        world.assert_whole()
    assert rooms(drops.points) >= {"admit", "rescue", "claim", "execute", "execute.tail", "complete", "audit_log.record"}


def test_at_every_commit_point_of_a_replay(nursery: Nursery) -> None:
    world = World(nursery)
    replay = ("dlq", "replay", "--all", "--reason", "the receiver is open again")

    def dead() -> Sequence[Command]:
        world.bury(world.contact())
        return [replay]

    for number, child in enumerate(EveryPoint(nursery, dead, signal=DROP, sides=BEFORE), start=1):
        assert child.ended["code"] in (0, 2), child.said
        nursery.succeed(replay)
        world.go_on()
        world.assert_whole()
        assert WorkItem.objects.exclude(replay_of_work_id=None).count() == len(FORMS) * number
