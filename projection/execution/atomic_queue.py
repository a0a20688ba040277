"""The executor of atomic flows: they run one after another in the worker's own thread, each when its rate limit lets it start.

What must wait for its moment waits here, under its lease, while the worker claims and runs other work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from projection.execution.attempts import Attempt
from projection.execution.execute import run_atomic
from projection.execution.heartbeat import Heartbeat
from projection.execution.waiting import Waiting
from projection.leases import Ending
from projection.limits import starts
from projection.runtime.stop_flag import Stop

Group = list[Attempt]


class AtomicQueue:
    """What waits in one worker. Its thread runs what is due; any thread may take back what is not to start.

    `ended` takes what has ended, written together with the flows' own writes; `hand_back` what came too late for its slot.
    """

    def __init__(
        self,
        heartbeat: Heartbeat,
        stop: Stop,
        ended: Callable[[Sequence[Ending]], None],
        hand_back: Callable[[Sequence[Attempt]], None],
    ) -> None:
        self._heartbeat, self._stop, self._ended, self._hand_back = heartbeat, stop, ended, hand_back
        self._waiting = Waiting()

    def submit(self, attempts: Sequence[Attempt]) -> None:
        self._waiting.add(attempts)

    def seconds(self, most: float) -> float:
        return self._waiting.seconds(most)

    def take_back(self, destinations: Collection[str] | None = None) -> list[Attempt]:
        return self._waiting.take_back(destinations)

    def is_idle(self) -> bool:
        return not self._waiting

    def take_due(self) -> list[Group]:
        """What may start now, taken out: groups of one flow, for one transaction where that is possible.

        One of a limited route goes alone, so that it starts at its moment and not when those before it have run; those of a batch flow
        start together anyway.
        """
        groups: dict[tuple[str, int], Group] = {}
        for moment, number, attempt in self._waiting.take_due():
            is_alone = moment > 0 and not attempt.flow.batch
            groups.setdefault((attempt.flow.name, number if is_alone else -1), []).append(attempt)
        return list(groups.values())

    def run(self, groups: Sequence[Group]) -> None:
        """Run what was due, without the lock. What goes wrong in the database is raised; their leases run out then."""
        try:
            for group in groups:
                may = {one.lease: starts.limit_allows(one.claimed.route.id, one.claimed.starts_at) for one in group}
                self._hand_back([one for one in group if not may[one.lease]])
                ended = run_atomic([one for one in group if may[one.lease]], started=self._started, stop=self._stop)
                self._ended([ending for one in ended for ending in one.written])
        finally:
            self._heartbeat.watch(None)
            self._heartbeat.drop(attempt.lease for group in groups for attempt in group)

    def _started(self, attempt: Attempt) -> None:
        self._heartbeat.started(attempt.lease, attempt.flow.timeout)
        self._heartbeat.watch(attempt.flow.timeout)
