"""A claim worker is killed at every commit point of what it does: nothing is lost, and nothing takes effect twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from projection.models import WorkFailure, WorkItem
from tests.faults.children import Command, Nursery
from tests.faults.kills import EveryPoint, rooms
from tests.faults.world import AT_ONCE, SETTINGS, WORK, World

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]


def test_a_claim_worker(nursery: Nursery) -> None:
    """It finds work that another one had when it died, with more behind it; a lane of several items, retries, dead letters."""
    world = World(nursery, limited=True)

    def work() -> Sequence[Command]:
        left, spent, again = world.contact(), world.contact(), world.contact()
        world.deliver(left, spent)
        world.route()
        world.abandon(spent=spent)
        world.deliver(left)
        world.deliver(again, outcome="retry")
        world.route()
        return [WORK]

    kills = EveryPoint(nursery, work, {"settings": SETTINGS, "constants": AT_ONCE})
    for number, _ in enumerate(kills, start=1):
        world.go_on()
        world.assert_whole()
        assert WorkItem.objects.filter(state="dead").count() == 3 * number
        assert WorkFailure.objects.filter(outcome="dead").count() == 3 * number
    assert rooms(kills.points) >= {"heartbeat", "rescue", "claim", "execute", "execute.tail", "complete", "audit_log.record"}
