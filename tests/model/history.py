"""Histories: how random ones are made, how one is played, and how one that fails is made short.

The next step is drawn in sight of the reference, so that most steps do something. What was drawn is a plain list of steps, which plays
the same way again: that is what a failure prints, and what a regression test holds. (Hypothesis was tried as the driver: most of
its examples are variations of the one before, and faults that need five steps in a row were not found in hundreds of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.model import reference
from tests.model.steps import (
    ENDS,
    Advance,
    Beat,
    Cancel,
    Claim,
    Deliver,
    Discard,
    End,
    Hold,
    One,
    Pause,
    Prune,
    Release,
    Repair,
    Replay,
    Rescue,
    Resume,
    RetireRoute,
    RetryNow,
    RouteReceipts,
    Step,
    Sweep,
    UpgradePack,
    UpgradeRoute,
    Zombie,
)
from tests.model.world import EVERYTHING, KINDS, SOURCES, Beginning, World

STEPS = (5, 40)
"""Fewest and most steps of a history."""
KINDS_OF_ONE = ((0,), (0,), (2,), (0, 2), (1,), (1, 2), (2, 3), (4,), (3, 4), (0, 5), tuple(range(len(KINDS))))
SOURCES_OF_ONE = ((0,), (0,), (0, 2), (0, 1), tuple(range(len(SOURCES))))
"""A history is about few records and kinds, so that what it does meets on the same projections and lanes."""
MOMENTS = (0.000001, 1, 4.999999, 5, 30, 60, 61, 3600)
"""Seconds: around the settling time, the delays of retries and the lease."""


@dataclass
class Chance:
    """Draws the steps of one history."""

    random: Random
    kinds: tuple[int, ...]
    sources: tuple[int, ...]

    @classmethod
    def of(cls, seed: int) -> Chance:
        random = Random(seed)
        return cls(random, random.choice(KINDS_OF_ONE), random.choice(SOURCES_OF_ONE))

    def which(self) -> int:
        return self.random.randrange(12)

    def one(self) -> One:
        if self.random.random() < 0.25:
            return One(again=self.which(), other=self.random.random() < 0.3)
        return One(self.random.choice(self.kinds), self.random.choice(self.sources), laneless=self.random.random() < 0.05)

    def deliver(self) -> Deliver:
        items = tuple(self.one() for _ in range(self.random.choice((1, 1, 2, 4))))
        return Deliver(items, routed=self.random.random() < 0.8, stale=self.random.random() < 0.3)

    def claim(self) -> Claim:
        return Claim(self.random.choice((1, 2, 3, 100)))

    def end(self) -> End:
        late = self.which() if self.random.random() < 0.2 else None
        return End(tuple((self.which(), self.random.choice(ENDS)) for _ in range(self.random.choice((1, 1, 2, 4)))), late)

    def die(self) -> End:
        return End(tuple((self.which(), "dead") for _ in range(self.random.choice((1, 3)))))

    def prune(self) -> Prune:
        return Prune(self.random.choice((0, 1, 61)), self.random.choice((0, 0, 3600)))

    def replay(self) -> Replay:
        return Replay(tuple(self.which() for _ in range(self.random.choice((1, 1, 3)))), retarget=self.random.random() < 0.3)

    def step(self, world: World) -> Step:
        weighted = self._weighted(world)
        return self.random.choices([make for _, make in weighted], [weight for weight, _ in weighted])[0]()

    def _weighted(self, world: World) -> list[tuple[float, Callable[[], Step]]]:
        """Every step, as often as it should come next."""
        model = world.model
        states = {work.state for work in model.works}
        replayed = {work.replay_of for work in model.works}
        is_dead = any(work.state == reference.DEAD and work not in replayed for work in model.works)
        is_waiting = any(work.is_open and work.run_after > model.now for work in model.works)
        is_expired = any(work.lease_ends and work.lease_ends <= model.now for work in model.works)
        is_unrouted = any(event.route is None for event in model.events)
        return [
            (14, self.deliver),
            (14 if model.claimable() else 1, self.claim),
            (7 if world.running else 0, self.end),
            (6 if world.running else 0, self.die),
            (10 if is_dead else 0.5, self.replay),
            (5 if is_waiting else 1, lambda: Advance(self.random.choice(MOMENTS))),
            (4 if world.pending else 0, lambda: RouteReceipts(self.random.choice((1, 2, 3)))),
            (5 if is_expired else 0.5, Rescue),
            (1.5 if world.lost else 0, lambda: Zombie(self.which(), self.random.choice(ENDS))),
            (0.5 if world.running else 0, lambda: Beat(self.which())),
            (1.5 if model.works else 0, lambda: Cancel(self.which())),
            (1 if reference.DEAD in states else 0, lambda: Discard(self.which())),
            (1 if reference.RETRY in states else 0, lambda: RetryNow(self.which())),
            (1 if model.works else 0, lambda: Hold(self.which())),
            (3 if model.held else 0, lambda: Release(self.which())),
            (0.5, lambda: Pause(self.which())),
            (5 if model.paused else 0, lambda: Resume(self.which())),
            (0.7, lambda: UpgradeRoute(self.which())),
            (0.7, lambda: RetireRoute(self.which())),
            (0.7, UpgradePack),
            (4 if is_unrouted else 0, Sweep),
            (1.5 if states & set(reference.TERMINAL) else 0, self.prune),
            (0.5, Repair),
        ]


class Disagreement(AssertionError):
    """Product and reference disagree, or one of them failed; `steps` are those taken."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__(f"play(beginning, {steps})")
        self.steps = steps


def play_random(beginning: Beginning, seed: int) -> None:
    """Play the history of a seed. Raises Disagreement, from what went wrong."""
    chance = Chance.of(seed)
    world = beginning.world()
    taken: list[Step] = []
    try:
        for _ in range(chance.random.randint(*STEPS)):
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
    world.compare()


def _finish(world: World) -> None:
    """Open everything and drain; every hour brings each lane one item further. Then prove the invariants."""
    _take(world, RouteReceipts(EVERYTHING))
    while world.model.held:
        Release().take(world)
    while world.model.paused:
        Resume().take(world)
    world.advance(3600)
    Rescue().take(world)
    for _ in world.model.works:
        if any(work.is_open for work in world.model.works):
            world.advance(3600)
            Claim(EVERYTHING).take(world)
            End(tuple((0, "processed") for _ in world.running)).take(world)
    assert not any(work.is_open for work in world.model.works), f"work is stranded\n{world}"
    world.compare()
    world.prove()
