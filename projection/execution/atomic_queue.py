"""Atomic attempts in their turn: they run one after another in the worker's own thread, each when its rate limit lets it start.

What must wait for its moment waits here, under its lease, while the worker claims and runs other work. Joins no transaction.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Final

from projection.execution.attempts import Attempt
from projection.limits import rate_limits, route_limits
from projection.limits.destinations import destination_of

Group = list[Attempt]


def may_start(attempt: Attempt) -> bool:
    """Whether its rate limit lets an attempt begin now: at its own moment it does; one that is late needs another slot, if there is one.

    No statement but for one that is late. Raises the database's error.
    """
    late = monotonic() - attempt.claimed.starts_at
    terms = route_limits.find(attempt.claimed.route.id) if attempt.claimed.starts_at else None
    if terms is None or terms.limit_key is None or late <= rate_limits.LATE_SECONDS + terms.spacing:
        return True
    return rate_limits.again(terms.limit_key)


class InTurn:
    """What waits in one worker. Its thread takes what is due; any thread may take back what is not to start."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._heap: list[tuple[float, int, Attempt]] = []
        """(moment, number, attempt)."""
        self._numbers: Final = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, attempts: Sequence[Attempt]) -> None:
        with self._lock:
            for attempt in attempts:
                heapq.heappush(self._heap, (attempt.claimed.starts_at, next(self._numbers), attempt))

    def due(self) -> list[Group]:
        """What may start now, taken out: groups of one flow, for one transaction where that is possible.

        One of a limited route goes alone, so that it starts at its moment and not when those before it have run; those of a batch flow
        start together anyway.
        """
        groups: dict[tuple[str, int], Group] = {}
        with self._lock:
            now = monotonic()
            while self._heap and self._heap[0][0] <= now:
                moment, number, attempt = heapq.heappop(self._heap)
                is_alone = moment > 0 and not attempt.flow.batch
                groups.setdefault((attempt.flow.name, number if is_alone else -1), []).append(attempt)
        return list(groups.values())

    def seconds(self, most: float) -> float:
        """Until the next may start, at most `most`."""
        with self._lock:
            return min(most, max(0.0, self._heap[0][0] - monotonic())) if self._heap else most

    def take_back(self, destinations: Collection[str] | None = None) -> Group:
        """What waits (for these destinations, or at all), taken out: it is not to start here."""
        return self._take(lambda one: destinations is None or destination_of(one.claimed.route) in destinations)

    def _take(self, is_wanted: Callable[[Attempt], bool]) -> Group:
        with self._lock:
            taken = [one for one in self._heap if is_wanted(one[2])]
            self._heap = [one for one in self._heap if not is_wanted(one[2])]
            heapq.heapify(self._heap)
        return [attempt for _, _, attempt in taken]
