"""Steps of operators: cancel, discard, replay, hold, pause; and of configuration and retention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from connectors.configuration import packs, routes
from projection.completion import lanes
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.cancel import cancel, retry_now
from projection.replay.decision import Deferred, Target
from projection.replay.discard import discard
from projection.replay.replay import replay_many
from projection.retention.cut_offs import CutOffs
from projection.retention.prune import prune
from tests.model import replays, retention
from tests.model.choosing import Written, choose, pick, place
from tests.model.comparison import compare, row_of, rows
from tests.model.values import DEAD, QUEUED, RETRY, WAITING, Work
from tests.model.world import NAMESPACES, World


def _code_of(answer: Any) -> str:
    return answer.code if isinstance(answer, Refused) else ""


@dataclass(frozen=True, repr=False)
class Cancel(Written):
    which: int = 0

    def take(self, world: World) -> None:
        work = choose(world, self.which, WAITING, QUEUED, RETRY)
        if work is not None:
            inputs = world.model.inputs(work)
            answer = cancel(row_of(world, work).work_id, actor="model", reason="")
            assert _code_of(answer) == world.model.cancel(work)
            if not _code_of(answer):
                world.account(work, inputs)


@dataclass(frozen=True, repr=False)
class Discard(Written):
    which: int = 0

    def take(self, world: World) -> None:
        work = choose(world, self.which, DEAD)
        if work is not None:
            answer = discard(row_of(world, work).work_id, actor="model", reason="")
            assert _code_of(answer) == world.model.discard(work)


@dataclass(frozen=True, repr=False)
class RetryNow(Written):
    which: int = 0

    def take(self, world: World) -> None:
        work = choose(world, self.which, RETRY)
        if work is not None:
            assert retry_now(row_of(world, work).work_id, actor="model") == world.model.retry_now(work)


@dataclass(frozen=True, repr=False)
class Replay(Written):
    """Replay some items in one call; `retarget`: under the current versions of their routes."""

    which: tuple[int, ...] = (0,)
    retarget: bool = False

    def take(self, world: World) -> None:
        works = list(dict.fromkeys(work for one in self.which if (work := choose(world, one, DEAD))))
        if not works:
            return
        found = rows(world)
        current = dict(world.model.routes) if self.retarget else {}
        targets = {found[work].work_id: self._target(world, work) for work in works if _place_of(work) in current}
        answers = replay_many([found[work].work_id for work in works], actor="model", reason="", targets=targets)
        codes = ["deferred" if isinstance(answer, Deferred) else _code_of(answer) for answer in answers]
        assert codes == replays.replay(world.model, works, current)

    @staticmethod
    def _target(world: World, work: Work) -> Target:
        route = world.model.routes[_place_of(work)]
        return Target(world.facts_of(route), world.incarnations[route.pack][1], route.target)


def _place_of(work: Work) -> tuple[str, str]:
    return work.route.namespace, work.route.key


@dataclass(frozen=True, repr=False)
class Hold(Written):
    which: int = 0

    def take(self, world: World) -> None:
        lane = pick(sorted({work.event.lane for work in world.model.works if work.event.lane}), self.which)
        if lane is not None:
            held = lanes.hold(lane[0], world.lane_key(lane), "/".join(lane), actor="model", reason="")
            assert held == (lane not in world.model.held)
            world.model.held.add(lane)


@dataclass(frozen=True, repr=False)
class Release(Written):
    which: int = 0

    def take(self, world: World) -> None:
        lane = pick(sorted(world.model.held), self.which)
        if lane is not None:
            assert lanes.release(world.lane_key(lane), actor="model")
            world.model.held.discard(lane)


@dataclass(frozen=True, repr=False)
class Pause(Written):
    """Pause a namespace, a pack or a route version."""

    which: int = 0

    def take(self, world: World) -> None:
        everything: list[object] = [*NAMESPACES, *world.incarnations, *world.facts]
        world.pause(pick(everything, self.which))


@dataclass(frozen=True, repr=False)
class Resume(Written):
    which: int = 0

    def take(self, world: World) -> None:
        what = pick(sorted(world.model.paused, key=repr), self.which)
        if what is not None:
            world.resume(what)


@dataclass(frozen=True, repr=False)
class UpgradeRoute(Written):
    """A new version of a route, also of a retired one."""

    which: int = 0

    def take(self, world: World) -> None:
        (namespace, key), draft = list(world.drafts.items())[self.which % len(world.drafts)]
        world.changes += 1
        world.drafts[namespace, key] = replace(draft, masks=(f"$.change{world.changes}",))
        published = routes.publish(namespace, world.drafts[namespace, key], actor="model")
        assert published.created
        world.adopt(published.route_facts)


@dataclass(frozen=True, repr=False)
class RetireRoute(Written):
    which: int = 0

    def take(self, world: World) -> None:
        found = pick(sorted(world.model.routes), self.which)
        if found is not None:
            routes.retire(*found, actor="model")
            world.model.retire(*found)


@dataclass(frozen=True, repr=False)
class UpgradePack(Written):
    at: int = 0

    def take(self, world: World) -> None:
        namespace = place(self.at)
        before = world.packs[namespace]
        world.adopt_pack(packs.upgrade(namespace, "generic", actor="model").pack)
        if before in world.model.paused:  # a paused pack stays so
            world.model.paused.add(world.packs[namespace])
        for facts in routes.all_current(namespace):
            world.adopt(facts)


@dataclass(frozen=True, repr=False)
class Prune(Written):
    """Remove what ended longer ago; undiscarded dead items have a longer term."""

    seconds: float = 0
    dead_seconds: float = 0

    def take(self, world: World) -> None:
        now = world.model.now
        cut_offs = CutOffs(now - timedelta(seconds=self.seconds), now - timedelta(seconds=self.seconds + self.dead_seconds))
        before = prune(cut_offs, dry_run=True)
        compare(world)
        found = rows(world)
        pruned = prune(cut_offs)
        assert pruned == before
        left = set(WorkItem.objects.values_list("id", flat=True))
        kept = {work for work, row in found.items() if row.id in left}
        assert (pruned.events, pruned.work_items) == retention.prune(world.model, cut_offs.before, cut_offs.dead_before, kept)
