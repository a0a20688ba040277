"""A worker stands still past its lease (SIGSTOP: a suspended machine) and goes on (SIGCONT): what it had is another's by then."""

from __future__ import annotations

import signal
from collections import Counter
from time import sleep
from typing import Any

import pytest
from django.db.models import QuerySet

from connectors.models import AuditEntry
from projection.models import Event, WorkFailure, WorkItem
from tests.faults.children import Child, Nursery
from tests.faults.orders import STOP, At, Side
from tests.faults.world import EXACTLY_ONCE, FORMS, LEASE_SECONDS, SETTINGS, WORK, World

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

FREE: list[tuple[str, Side, str]] = [
    ("heartbeat", "before", "plain"),
    ("claim", "before", "atomic"),
    ("claim", "after", "atomic"),
    ("audit_log.record", "before", "plain"),
    ("audit_log.record", "after", "plain"),
    ("execute", "after", "atomic"),
    ("execute.tail", "after", "tail"),
    ("complete", "after", "plain"),
]
"""(room, side of its first commit point, form) where the worker stands still and holds no row."""
HOLDING = [("rescue", "atomic"), ("execute", "atomic"), ("execute.tail", "tail"), ("complete", "plain")]
"""(room, form) before whose COMMIT it holds what it was just ending: only the server could take that from it."""


def written() -> list[Any]:
    """What workers write, but for what a plain flow does by itself: its worker has no say in that."""
    parts: list[QuerySet[Any]] = [model.objects.all() for model in (Event, WorkItem, WorkFailure)]
    parts.append(AuditEntry.objects.exclude(action="ran.plain"))
    return [list(part.order_by("pk").values()) for part in parts]


def wake_up(nursery: Nursery, child: Child) -> None:
    """It goes on, and comes to its end."""
    child.send(signal.SIGCONT)
    assert nursery.wait(child).ended == {"code": 0}, child.said


@pytest.mark.parametrize("form", FORMS)
def test_in_the_middle_of_a_flow(nursery: Nursery, form: str) -> None:
    world = World(nursery, forms=(form,))
    one, other = world.contact(), world.contact()
    world.deliver(one, outcome="stop")
    world.route()
    stopped = nursery.run(WORK, settings=SETTINGS)
    assert stopped.ended == {"stopped": True}
    world.deliver(one)
    world.deliver(other)
    world.go_on()
    world.assert_whole()
    attempts = Counter(WorkItem.objects.filter(source_lane=f"contact:{one}").values_list("attempts", flat=True))
    assert attempts == {2: 1, 1: 1}, "the one that was taken from it, and what came meanwhile"

    before = written()
    wake_up(nursery, stopped)
    assert written() == before
    assert '"lease_lost"' in stopped.said
    runs = AuditEntry.objects.filter(action=f"ran.{form}").count()
    assert runs == (3 if form in EXACTLY_ONCE else 4), "a plain flow is at least once"
    world.assert_whole()


def stopped_at(nursery: Nursery, world: World, room: str, side: Side) -> Child:
    """A worker that stands still there. It found an item that another had left, and one behind it."""
    left = world.contact()
    world.deliver(left)
    world.route()
    world.abandon()
    world.deliver(left)
    world.route()
    stopped = nursery.run(WORK, at=At(1, side, STOP, f"{room}:"), settings=SETTINGS)
    assert stopped.ended == {"stopped": True}, stopped.said
    return stopped


@pytest.mark.parametrize(("room", "side", "form"), FREE)
def test_where_it_holds_no_row_every_lane_moves_without_it(nursery: Nursery, room: str, side: Side, form: str) -> None:
    world = World(nursery, forms=(form,))
    stopped = stopped_at(nursery, world, room, side)
    world.deliver(world.contact())
    world.go_on()
    world.assert_whole()
    before = written()
    wake_up(nursery, stopped)
    assert written() == before
    world.assert_whole()


@pytest.mark.parametrize(("room", "form"), HOLDING)
def test_in_the_middle_of_an_end_it_holds_what_it_ends_and_ends_it_once(nursery: Nursery, room: str, form: str) -> None:
    world = World(nursery, forms=(form,))
    stopped = stopped_at(nursery, world, room, "before")
    sleep(LEASE_SECONDS)  # the database's clock sends no signal
    other = nursery.succeed(WORK, settings=SETTINGS)
    assert "the row" in other.said, "it is told of, and left alone"
    wake_up(nursery, stopped)
    world.go_on()
    world.assert_whole()
