"""Steps of workers and of the clock: claim, end, retry, lost leases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from projection.claiming import rescue
from projection.completion.complete import complete
from projection.execution.attempts import failure, hand_back
from projection.flows import DeadLetter, RetryLater, Skip
from projection.leases import Ending
from projection.models import WorkItem
from projection.states import State
from tests.model.choosing import Written, pick
from tests.model.comparison import claim_some
from tests.model.values import LEASE, PROCESSING, TERMINAL, Work
from tests.model.world import LEASE_SECONDS, Held, World


@dataclass(frozen=True, repr=False)
class Claim(Written):
    limit: int = 1

    def take(self, world: World) -> None:
        claim_some(world, self.limit)


ENDS = ("processed", "skipped", "dead", "failed", "later", "long", "deferred", "back")


def _ending(held: Held, how: str) -> Ending:
    """What the executor makes of a flow that ended so."""
    errors: dict[str, BaseException] = {
        "skipped": Skip("nothing to do"),
        "dead": DeadLetter("hopeless"),
        "failed": ValueError("no"),
        "later": RetryLater(10),
        "long": RetryLater(3600),
        "deferred": RetryLater(30, count_attempt=False),
    }
    if how == "processed":
        return held.attempt.ending(State.PROCESSED)
    return hand_back(held.attempt) if how == "back" else failure(held.attempt, errors[how])


def _end_in_reference(world: World, work: Work, how: str) -> None:
    model = world.model
    if how in ("failed", "later", "long", "deferred"):
        model.clear(work)
    if how in ("processed", "skipped", "dead"):
        model.end(work, how)
    elif how == "back":
        model.retry(work, timedelta(), counts=False)
    elif how == "deferred":
        model.defer(work, timedelta(seconds=30))
    else:
        model.fail(work, timedelta(seconds={"failed": 1, "later": 10, "long": 3600}[how]))


@dataclass(frozen=True, repr=False)
class End(Written):
    """End some of the running attempts in one completion. `late`: so does a worker that lost one of its leases; that changes nothing."""

    ends: tuple[tuple[int, str], ...] = ((0, "processed"),)
    late: int | None = None

    def take(self, world: World) -> None:
        late = pick(world.lost, self.late) if self.late is not None else None
        chosen: list[tuple[Held, str]] = []
        for which, how in self.ends:
            held = pick(world.running, which)
            if held is not None:
                world.running.remove(held)
                chosen.append((held, how))
        if chosen:
            endings = [_ending(held, how) for held, how in chosen]
            ended = complete([*endings, _ending(late, "skipped")] if late else endings)
            assert list(ended.lost) == ([late.attempt.claimed.item.work_id] if late else [])
            assert list(ended.written) == endings
        for held, how in chosen:
            _end_in_reference(world, held.work, how)
            _account_ended(world, held)
            world.lost.append(held)


def _account_ended(world: World, held: Held) -> None:
    if held.work.state in TERMINAL:
        world.account(held.work, world.inputs_of(held))


@dataclass(frozen=True, repr=False)
class Zombie(Written):
    """A worker whose lease is gone, or whose report was written already, reports (again): nothing changes."""

    which: int = 0
    how: str = "processed"

    def take(self, world: World) -> None:
        held = pick(world.lost, self.which)
        if held is not None:
            ended = complete([_ending(held, self.how)])
            assert list(ended.lost) == [held.attempt.claimed.item.work_id]
            assert not ended.written
            token = held.attempt.token
            assert WorkItem.objects.extend_leases([held.attempt.claimed.item.id], token, LEASE_SECONDS) == 0


@dataclass(frozen=True, repr=False)
class Beat(Written):
    """A heartbeat extends one lease (also one that ran out and was not rescued yet)."""

    which: int = 0

    def take(self, world: World) -> None:
        held = pick(world.running, self.which)
        if held is not None:
            WorkItem.objects.extend_leases([held.attempt.claimed.item.id], held.attempt.token, LEASE_SECONDS)
            held.work.lease_ends = world.model.now + LEASE


@dataclass(frozen=True, repr=False)
class Rescue(Written):
    def take(self, world: World) -> None:
        assert rescue.rescue() == world.model.rescue()
        gone = [held for held in world.running if held.work.state != PROCESSING]
        for held in gone:
            _account_ended(world, held)
        world.lost += gone
        world.running = [held for held in world.running if held not in gone]


@dataclass(frozen=True, repr=False)
class Advance(Written):
    seconds: float = 1

    def take(self, world: World) -> None:
        world.advance(self.seconds)


@dataclass(frozen=True, repr=False)
class StepBack(Written):
    """The clock goes back (another server took over): not so far that what is due would not be, nor before what was admitted of work that
    has been claimed or has ended.

    Both are no histories of the protocol. Time alone changes no row (7), so a row may be `blocked` behind one that is due no more; and a
    row without ordinal that an old binary wrote before such a selection counts as represented by it (docs/protocol.md#coverage).
    """

    seconds: float = 30

    def take(self, world: World) -> None:
        model = world.model
        due = [work.run_after for work in model.works if work.is_open and work.run_after <= model.now]
        back = max([model.now - timedelta(seconds=self.seconds), *due])
        world.set_clock(min(model.now, back))
        world.catch_up()
