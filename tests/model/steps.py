"""The steps of a history: each does one thing to the product and the same to the reference, and compares the answers.

Plain values of small numbers, so that a failing history can be made short and written down as a regression test. `which` picks one
of those that the step can be done to (modulo their number); where there is none, the step does nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from connectors import endpoints_cache, installations, routes, sweep
from connectors.models import Receipt
from connectors.router import route_batch
from projection import lanes, rescue
from projection.cancel import cancel
from projection.complete import Ending, complete
from projection.discard import discard
from projection.execute import failure, hand_back
from projection.flows import DeadLetter, RetryLater, Skip
from projection.models import WorkItem
from projection.prune import Terms, prune
from projection.refusals import Refused
from projection.repair import Repaired, repair
from projection.replay import Deferred, Target, replay_many
from projection.retry_now import retry_now
from projection.states import State
from tests.model import reference
from tests.model.reference import Item, Work
from tests.model.world import KINDS, LEASE_SECONDS, NAMESPACE, SOURCES, Held, World

T = TypeVar("T")
REFUSALS = ("", "deferred", "not_dead", "discarded", "already_replayed", "active_generation")


def pick(candidates: Sequence[T], which: int) -> T | None:
    return candidates[which % len(candidates)] if candidates else None


@dataclass(frozen=True)
class One:
    """One delivered item. `again` None: a new delivery; else a copy of an earlier one, `other` with another payload."""

    kind: int = 0
    source: int = 0
    again: int | None = None
    other: bool = False
    laneless: bool = False

    def item(self, world: World) -> Item:
        earlier = pick(world.delivered, self.again) if self.again is not None else None
        if earlier is not None and not self.other:
            return earlier
        delivery = earlier.delivery if earlier else f"d{len(world.delivered) + 1}"
        kind = earlier.kind if earlier else KINDS[self.kind % len(KINDS)]
        source, lane = (earlier.source, earlier.lane) if earlier else SOURCES[self.source % len(SOURCES)]
        lane = "" if self.laneless else lane
        members = {
            "id": delivery,
            "kind": kind,
            "type": "contact",
            "contact": source,
            "lane": lane or None,
            "n": len(world.delivered),
        }
        return Item(delivery, kind, source, lane, json.dumps(members))


@dataclass(frozen=True)
class Deliver:
    """Store a delivery of one or more items; route it at once or leave it waiting. `stale`: by an endpoint read before an upgrade."""

    items: tuple[One, ...] = (One(),)
    routed: bool = True
    stale: bool = False

    def take(self, world: World) -> None:
        items = []
        for one in self.items:
            items.append(one.item(world))
            if items[-1] not in world.delivered:
                world.delivered.append(items[-1])
        if not self.stale:
            found = endpoints_cache.load((NAMESPACE, "main"))
            assert found is not None
            world.endpoint = found
        world.pending.append((world.store(items, world.endpoint), items))
        if self.routed:
            RouteReceipts(1000).take(world)


@dataclass(frozen=True)
class RouteReceipts:
    """Route the oldest receipts in one batch."""

    batch: int = 1

    def take(self, world: World) -> None:
        batch, world.pending = world.pending[: self.batch], world.pending[self.batch :]
        report = route_batch(NAMESPACE, self.batch)
        counts = world.model.admit([items for _, items in batch])
        expected = {receipt: (c.items, c.events, c.duplicates, c.conflicts) for (receipt, _), c in zip(batch, counts, strict=True)}
        rows = Receipt.objects.filter(id__in=expected, state="routed")
        assert {row.id: (row.item_count, row.event_count, row.duplicate_count, row.conflict_count) for row in rows} == expected
        assert (report.receipts, report.repaired) == (len(batch), 0)


@dataclass(frozen=True)
class Claim:
    limit: int = 1

    def take(self, world: World) -> None:
        world.claim(self.limit)


ENDS = ("processed", "skipped", "dead", "failed", "later", "long", "deferred", "back")


def ending(held: Held, how: str) -> Ending:
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


def end_in_reference(world: World, work: Work, how: str) -> None:
    model = world.model
    if how in ("processed", "skipped", "dead"):
        model.end(work, how)
    elif how == "back":
        model.retry(work, timedelta(), counts=False)
    elif how == "deferred":
        model.retry(work, timedelta(seconds=30), counts=False)
    else:
        model.fail(work, timedelta(seconds={"failed": 1, "later": 10, "long": 3600}[how]))


@dataclass(frozen=True)
class End:
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
            endings = [ending(held, how) for held, how in chosen]
            ended = complete([*endings, ending(late, "skipped")] if late else endings)
            assert list(ended.lost) == ([late.attempt.claimed.item.work_id] if late else [])
            assert list(ended.written) == endings
        for held, how in chosen:
            end_in_reference(world, held.work, how)
            world.lost.append(held)


@dataclass(frozen=True)
class Zombie:
    """A worker whose lease is gone, or whose report was written already, reports (again): nothing changes."""

    which: int = 0
    how: str = "processed"

    def take(self, world: World) -> None:
        held = pick(world.lost, self.which)
        if held is not None:
            ended = complete([ending(held, self.how)])
            assert list(ended.lost) == [held.attempt.claimed.item.work_id]
            assert not ended.written
            token = held.attempt.token
            assert WorkItem.objects.extend_leases([held.attempt.claimed.item.id], token, LEASE_SECONDS) == 0


@dataclass(frozen=True)
class Beat:
    """A heartbeat extends one lease (also one that ran out and was not rescued yet)."""

    which: int = 0

    def take(self, world: World) -> None:
        held = pick(world.running, self.which)
        if held is not None:
            WorkItem.objects.extend_leases([held.attempt.claimed.item.id], held.attempt.token, LEASE_SECONDS)
            held.work.lease_ends = world.model.now + reference.LEASE


@dataclass(frozen=True)
class Rescue:
    def take(self, world: World) -> None:
        assert rescue.rescue() == world.model.rescue()
        world.lost += [held for held in world.running if held.work.state != reference.PROCESSING]
        world.running = [held for held in world.running if held.work.state == reference.PROCESSING]


@dataclass(frozen=True)
class Advance:
    seconds: float = 1

    def take(self, world: World) -> None:
        world.advance(self.seconds)


def choose(world: World, which: int, *states: str) -> Work | None:
    """One of the items in these states; where there is none, any item (to be refused)."""
    return pick([work for work in world.model.works if work.state in states] or world.model.works, which)


def code_of(answer: Any) -> str:
    return answer.code if isinstance(answer, Refused) else ""


@dataclass(frozen=True)
class Cancel:
    which: int = 0

    def take(self, world: World) -> None:
        work = choose(world, self.which, reference.WAITING, reference.QUEUED, reference.RETRY)
        if work is not None:
            answer = cancel(world.row(work).work_id, actor="model", reason="")
            assert code_of(answer) == world.model.cancel(work)


@dataclass(frozen=True)
class Discard:
    which: int = 0

    def take(self, world: World) -> None:
        work = choose(world, self.which, reference.DEAD)
        if work is not None:
            answer = discard(world.row(work).work_id, actor="model", reason="")
            assert code_of(answer) == world.model.discard(work)


@dataclass(frozen=True)
class RetryNow:
    which: int = 0

    def take(self, world: World) -> None:
        work = choose(world, self.which, reference.RETRY)
        if work is not None:
            assert retry_now(world.row(work).work_id, actor="model") == world.model.retry_now(work)


@dataclass(frozen=True)
class Replay:
    """Replay some items in one call; `retarget`: under the current versions of their routes."""

    which: tuple[int, ...] = (0,)
    retarget: bool = False

    def take(self, world: World) -> None:
        works = list(dict.fromkeys(work for one in self.which if (work := choose(world, one, reference.DEAD))))
        if not works:
            return
        rows = world.rows()
        current = dict(world.model.routes) if self.retarget else {}
        targets = {rows[work].work_id: self._target(world, work) for work in works if work.route.key in current}
        answers = replay_many([rows[work].work_id for work in works], actor="model", reason="", targets=targets)
        codes = ["deferred" if isinstance(answer, Deferred) else code_of(answer) for answer in answers]
        assert codes == world.model.replay(works, current)

    def _target(self, world: World, work: Work) -> Target:
        route = world.model.routes[work.route.key]
        return Target(world.facts[route.key, route.version], world.incarnations[route.pack][1])


@dataclass(frozen=True)
class Hold:
    which: int = 0

    def take(self, world: World) -> None:
        lane = pick(sorted({work.event.lane for work in world.model.works if work.event.lane}), self.which)
        if lane is not None:
            held = lanes.hold(NAMESPACE, world.lane_key(lane), "/".join(lane), actor="model", reason="")
            assert held == (lane not in world.model.held)
            world.model.held.add(lane)


@dataclass(frozen=True)
class Release:
    which: int = 0

    def take(self, world: World) -> None:
        lane = pick(sorted(world.model.held), self.which)
        if lane is not None:
            assert lanes.release(world.lane_key(lane), actor="model")
            world.model.held.discard(lane)


@dataclass(frozen=True)
class Pause:
    """Pause the namespace, a pack or a route version."""

    which: int = 0

    def take(self, world: World) -> None:
        everything: list[object] = ["namespace", *world.incarnations, *world.facts]
        world.pause(pick(everything, self.which))


@dataclass(frozen=True)
class Resume:
    which: int = 0

    def take(self, world: World) -> None:
        what = pick(sorted(world.model.paused, key=repr), self.which)
        if what is not None:
            world.resume(what)


@dataclass(frozen=True)
class UpgradeRoute:
    """A new version of a route, also of a retired one."""

    which: int = 0

    def take(self, world: World) -> None:
        draft = pick(list(world.drafts.values()), self.which)
        assert draft is not None
        world.changes += 1
        world.drafts[draft.key] = replace(draft, masks=(f"$.change{world.changes}",))
        published = routes.publish(NAMESPACE, world.drafts[draft.key], actor="model")
        assert published.created
        world.adopt(published.route_facts)


@dataclass(frozen=True)
class RetireRoute:
    which: int = 0

    def take(self, world: World) -> None:
        key = pick(sorted(world.model.routes), self.which)
        if key is not None:
            routes.retire(NAMESPACE, key, actor="model")
            world.model.retire(key)


@dataclass(frozen=True)
class UpgradePack:
    def take(self, world: World) -> None:
        upgraded = installations.upgrade(NAMESPACE, "generic", actor="model")
        before = world.model.pack
        world.adopt_pack(upgraded.pack)
        if before in world.model.paused:  # a paused pack stays so
            world.model.paused.add(world.model.pack)
        for facts in routes.all_current(NAMESPACE):
            world.adopt(facts)


@dataclass(frozen=True)
class Sweep:
    def take(self, world: World) -> None:
        assert sweep.sweep() == world.model.sweep()


@dataclass(frozen=True)
class Prune:
    """Remove what ended longer ago; undiscarded dead items have a longer term."""

    seconds: float = 0
    dead_seconds: float = 0

    def take(self, world: World) -> None:
        now = world.model.now
        terms = Terms(now - timedelta(seconds=self.seconds), now - timedelta(seconds=self.seconds + self.dead_seconds))
        before = prune(terms, dry_run=True)
        world.compare()
        pruned = prune(terms)
        assert pruned == before
        assert (pruned.events, pruned.work_items) == world.model.prune(terms.before, terms.dead_before)


@dataclass(frozen=True)
class Repair:
    """There is nothing to repair, ever."""

    def take(self, world: World) -> None:
        assert repair() == Repaired(0, 0, 0)


Step = (
    Deliver | RouteReceipts | Claim | End | Zombie | Beat | Rescue | Advance | Cancel | Discard | RetryNow | Replay | Hold | Release
    | Pause | Resume | UpgradeRoute | RetireRoute | UpgradePack | Sweep | Prune | Repair
)  # fmt: skip
