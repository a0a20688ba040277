"""How random histories are made: the next step is drawn in sight of the reference, so that most steps do something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.model.steps import (
    ENDS,
    Activate,
    Advance,
    Beat,
    BeforeActivation,
    Cancel,
    Claim,
    Deliver,
    Discard,
    End,
    Hold,
    OldBinaryEnds,
    OldBinaryLeases,
    OldBinaryWrites,
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
    StepBack,
    Sweep,
    UpgradePack,
    UpgradeRoute,
    Zombie,
)
from tests.model.values import DEAD, RETRY, TERMINAL
from tests.model.world import KINDS, NAMESPACES, SOURCES, World

KINDS_OF_ONE = ((0,), (0,), (2,), (0, 2), (1,), (1, 2), (2, 3), (4,), (3, 4), (0, 5), tuple(range(len(KINDS))))
SOURCES_OF_ONE = ((0,), (0,), (0, 2), (0, 1), tuple(range(len(SOURCES))))
PLACES_OF_ONE = ((0,), (0,), (0, 1))
"""A history is about few records, kinds and namespaces, so that what it does meets on the same projections and lanes."""
MOMENTS = (1, 0.000001, 4.999999, 5, 30, 60, 61, 3600)
"""Seconds: around the settling time, the delays of retries and the lease."""

Weighted = list[tuple[int, Callable[[], Step]]]


@dataclass
class Chance:
    """Draws the steps of one history. All draws are choices among few: those of large ranges Hypothesis would not make evenly."""

    random: Random
    kinds: tuple[int, ...]
    sources: tuple[int, ...]
    places: tuple[int, ...]
    beside_old_binary: bool

    @classmethod
    def of(cls, random: Random) -> Chance:
        beside_old_binary = random.randrange(4) == 3
        return cls(
            random, random.choice(KINDS_OF_ONE), random.choice(SOURCES_OF_ONE), random.choice(PLACES_OF_ONE), beside_old_binary
        )

    def first(self) -> list[Step]:
        return [BeforeActivation()] if self.beside_old_binary and self.once_in(2) else []

    def step(self, world: World) -> Step:
        weighted = [*self._of_events(world), *self._of_workers(world), *self._of_operators(world)]
        if self.beside_old_binary:
            weighted += self._of_the_old_binary(world)
        return self.random.choice([make for weight, make in weighted for _ in range(weight)])()

    def which(self) -> int:
        return self.random.randrange(12)

    def at(self) -> int:
        return self.random.choice(self.places)

    def once_in(self, times: int) -> bool:
        return self.random.randrange(times) == times - 1

    def one(self) -> One:
        if self.once_in(4):
            return One(again=self.which(), other=self.once_in(3))
        return One(self.random.choice(self.kinds), self.random.choice(self.sources), laneless=self.once_in(20))

    def deliver(self) -> Deliver:
        items = tuple(self.one() for _ in range(self.random.choice((1, 1, 2, 4))))
        return Deliver(items, routed=not self.once_in(5), stale=self.once_in(3), at=self.at())

    def claim(self) -> Claim:
        return Claim(self.random.choice((100, 1, 2, 3)))

    def end(self) -> End:
        late = self.which() if self.once_in(5) else None
        return End(tuple((self.which(), self.random.choice(ENDS)) for _ in range(self.random.choice((1, 1, 2, 4)))), late)

    def die(self) -> End:
        return End(tuple((self.which(), "dead") for _ in range(self.random.choice((1, 3)))))

    def prune(self) -> Prune:
        return Prune(self.random.choice((0, 1, 61)), self.random.choice((0, 0, 3600)))

    def replay(self) -> Replay:
        return Replay(tuple(self.which() for _ in range(self.random.choice((1, 1, 3)))), retarget=self.once_in(3))

    def old_write(self) -> OldBinaryWrites:
        return OldBinaryWrites(self.random.choice(self.kinds), self.random.choice(self.sources), self.at())

    def _of_events(self, world: World) -> Weighted:
        is_unrouted = any(event.route is None for event in world.model.events)
        return [
            (28, self.deliver),
            (8 if any(world.pending.values()) else 0, lambda: RouteReceipts(self.random.choice((1, 2, 3)), self.at())),
            (8 if is_unrouted else 0, Sweep),
            (1, Repair),
        ]

    def _of_workers(self, world: World) -> Weighted:
        model = world.model
        is_waiting = any(work.is_open and work.run_after > model.now for work in model.works)
        is_expired = any(work.lease_ends and work.lease_ends <= model.now for work in model.works)
        return [
            (28 if model.claimable() else 2, self.claim),
            (14 if world.running else 0, self.end),
            (12 if world.running else 0, self.die),
            (10 if is_waiting else 2, lambda: Advance(self.random.choice(MOMENTS))),
            (10 if is_expired else 1, Rescue),
            (3 if world.lost else 0, lambda: Zombie(self.which(), self.random.choice(ENDS))),
            (1 if world.running else 0, lambda: Beat(self.which())),
        ]

    def _of_operators(self, world: World) -> Weighted:
        model = world.model
        states = {work.state for work in model.works}
        replayed = {work.replay_of for work in model.works}
        is_dead = any(work.state == DEAD and work not in replayed for work in model.works)
        return [
            (20 if is_dead else 1, self.replay),
            (3 if model.works else 0, lambda: Cancel(self.which())),
            (2 if DEAD in states else 0, lambda: Discard(self.which())),
            (2 if RETRY in states else 0, lambda: RetryNow(self.which())),
            (2 if model.works else 0, lambda: Hold(self.which())),
            (6 if model.held else 0, lambda: Release(self.which())),
            (1, lambda: Pause(self.which())),
            (10 if model.paused else 0, lambda: Resume(self.which())),
            (1, lambda: UpgradeRoute(self.which())),
            (1, lambda: RetireRoute(self.which())),
            (1, lambda: UpgradePack(self.at())),
            (3 if states & set(TERMINAL) else 0, self.prune),
        ]

    def _of_the_old_binary(self, world: World) -> Weighted:
        model = world.model
        is_missing = any(model.missing(name) for name in NAMESPACES)
        return [
            (14, self.old_write),
            (12 if is_missing else 0, Repair),
            (6 if model.owned else 0, lambda: OldBinaryLeases(self.which())),
            (6 if model.legacy_leases else 0, lambda: OldBinaryEnds(self.which())),
            (0 if model.activated else 3, Activate),
            (3, lambda: StepBack(self.random.choice((1, 30)))),
        ]
