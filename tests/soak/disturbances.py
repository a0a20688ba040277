"""What happens to a service in the soak: processes are killed at random, and the database ends and comes back."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final

from tests.acceptance.private_server import PrivateServer
from tests.acceptance.service import Process, Service
from tests.support.running import children_of, command_of
from tests.support.small_disk import SmallDisk

LOOK_SECONDS: Final = 0.2
WEIGHTS: Final = {"worker": 4, "router": 2, "web worker": 3, "other process of the cluster": 2}
"""How often each kind of process is killed."""


@dataclass(frozen=True)
class Plan:
    """Seconds from the start. A kill comes every `pause` seconds, at random between the two; `away`: how long the database stays away,
    and a disk full. `full_at`: which disks, by their names, fill up together.
    """

    seconds: float
    pause: tuple[float, float]
    crashes_at: tuple[float, ...]
    stops_at: tuple[float, ...]
    full_at: tuple[tuple[float, tuple[str, ...]], ...]
    away: float


class Site:
    """The processes of the service, started again when they end, as every supervisor does."""

    def __init__(self, service: Service, **cluster: str) -> None:
        self._service = service
        self._settings = cluster
        self.web = service.start_web()
        self.cluster = service.start_cluster(**cluster)
        self.restarts: Counter[str] = Counter()

    def keep_alive(self) -> None:
        if not self.web.is_alive():
            self.web = self._again(self.web, self._service.start_web)
        if not self.cluster.is_alive():
            self.cluster = self._again(self.cluster, lambda: self._service.start_cluster(**self._settings))

    def _again(self, ended: Process, start: Callable[[], Process]) -> Process:
        ended.kill()
        self.restarts[ended.name] += 1
        return start()

    def parents(self) -> dict[int, str]:
        """What is never killed: process id → what it is."""
        found = {self.web.pid: "gunicorn's master", self.cluster.pid: "head of the cluster"}
        return found | dict.fromkeys(children_of(self.cluster.pid), "sentinel of the cluster")

    def children(self) -> dict[int, str]:
        """What may be killed: process id → what it is."""
        found = dict.fromkeys(children_of(self.web.pid), "web worker")
        for sentinel in children_of(self.cluster.pid):
            found |= dict.fromkeys(children_of(sentinel), "other process of the cluster")
        return {pid: name for pid, name in found.items() if command_of(pid)}


class Disturbances:
    """Carries out a plan in a thread of its own; `failure`: what went wrong in it."""

    def __init__(
        self,
        site: Site,
        server: PrivateServer | None,
        disks: Mapping[str, SmallDisk],
        plan: Plan,
        loops: Callable[[], dict[int, str]],
        seed: int,
    ) -> None:
        self._site = site
        self._server = server
        self._disks = disks
        self._plan = plan
        self._loops = loops
        self._chance = random.Random(seed)
        self._end = threading.Event()
        self.kills: Counter[str] = Counter()
        self.away_seconds: list[tuple[str, float]] = []
        """How the database went, and how long it was away."""
        self.filled: list[tuple[str, ...]] = []
        """Disks that were full, each time."""
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Ends it; raises what went wrong."""
        self._end.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            self._carry_out()
        except BaseException as error:  # noqa: BLE001  # the test raises it
            self.failure = error

    def _carry_out(self) -> None:
        began = monotonic()
        restarts = sorted([(at, "crash") for at in self._plan.crashes_at] + [(at, "stop") for at in self._plan.stops_at])
        full = sorted(self._plan.full_at) if self._disks else []
        kill_at = self._chance.uniform(*self._plan.pause)
        while not self._end.wait(LOOK_SECONDS):
            self._site.keep_alive()
            passed = monotonic() - began
            if self._server is not None and restarts and passed >= restarts[0][0]:
                self._restart(self._server, restarts.pop(0)[1])
            if full and passed >= full[0][0]:
                self._fill(full.pop(0)[1])
            if kill_at <= passed < self._plan.seconds:
                self._kill()
                kill_at = passed + self._chance.uniform(*self._plan.pause)

    def _restart(self, server: PrivateServer, how: str) -> None:
        since = monotonic()
        (server.crash if how == "crash" else server.stop)()
        self._end.wait(self._plan.away)
        server.start()
        self.away_seconds.append((how, monotonic() - since))

    def _fill(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._disks[name].fill()
        try:
            self._end.wait(self._plan.away)
        finally:
            for name in names:
                self._disks[name].free()
        self.filled.append(names)

    def _kill(self) -> None:
        """One of the children: a web worker, a router, a claim worker, or what else the cluster has (idle worker, monitor, pusher)."""
        loops = self._loops()
        kinds: dict[str, list[int]] = {}
        for pid, name in self._site.children().items():
            kinds.setdefault(loops.get(pid, name), []).append(pid)
        if not kinds:
            return
        kind = self._chance.choices(sorted(kinds), [WEIGHTS[kind] for kind in sorted(kinds)])[0]
        os.kill(self._chance.choice(sorted(kinds[kind])), signal.SIGKILL)
        self.kills[kind] += 1
