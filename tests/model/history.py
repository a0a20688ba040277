"""Histories: lists of steps, played on the product and on the reference. What fails is printed as a list that plays the same again."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.model.beginning import Beginning
from tests.model.chance import Chance
from tests.model.comparison import compare, prove
from tests.model.steps import Activate, Claim, End, Release, Repair, Rescue, Resume, RouteReceipts, Step
from tests.model.world import EVERYTHING, NAMESPACES, World

STEPS = (5, 40)
"""Fewest and most steps of a history."""


class Disagreement(AssertionError):
    """Product and reference disagree, or one of them failed; `steps` are those taken."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(f"play(beginning, {steps})")
        self.steps = steps


def play_random(beginning: Beginning, random: Random) -> None:
    """Play a history that `random` draws. Raises Disagreement, from what went wrong."""
    chance = Chance.of(random)
    world = beginning.world()
    taken: list[Step] = []
    try:
        for step in chance.first():
            taken.append(step)
            _take(world, step)
        for _ in range(random.randint(*STEPS)):
            taken.append(chance.step(world))
            _take(world, taken[-1])
        _finish(world)
    except Exception as error:
        raise Disagreement(taken) from error


def play(beginning: Beginning, steps: Sequence[Step]) -> None:
    """Take the steps one by one on a fresh beginning, compare after each, then drain and prove the invariants."""
    world = beginning.world()
    for step in steps:
        _take(world, step)
    _finish(world)


def _take(world: World, step: Step) -> None:
    step.take(world)
    world.catch_up()
    compare(world)


def _finish(world: World) -> None:
    """Open everything and drain; every hour brings each lane one item further. Then prove the invariants."""
    while world.model.held:
        Release().take(world)
    while world.model.paused:
        Resume().take(world)
    if not world.model.activated:
        Activate().take(world)
    _take_in(world)
    world.advance(3600)
    Rescue().take(world)
    for _ in range(len(world.model.works) + len(world.model.events)):
        if _is_done(world):
            break
        world.advance(3600)
        Claim(EVERYTHING).take(world)
        End(tuple((0, "processed") for _ in world.running)).take(world)
        _take_in(world)
    assert _is_done(world), f"work is stranded\n{world}"
    compare(world)
    prove(world)


def _take_in(world: World) -> None:
    """Route what is due, and make the work of what an old binary wrote."""
    for at, name in enumerate(NAMESPACES):
        if world.pending[name]:
            _take(world, RouteReceipts(EVERYTHING, at))
    if any(world.model.missing(name) for name in NAMESPACES):
        _take(world, Repair())


def _is_done(world: World) -> bool:
    model = world.model
    is_complete = not any(world.pending.values()) and not any(model.missing(name) for name in NAMESPACES)
    return is_complete and not any(work.is_open for work in model.works)
