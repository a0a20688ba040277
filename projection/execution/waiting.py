"""Claimed attempts that have not started, in the order in which they may: each has a moment, which its rate limit gave it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator, Sequence
from time import monotonic
from typing import Final

from projection.execution.attempts import Attempt
from projection.limits.destinations import destination_of

Place = tuple[float, int, Attempt]
"""(Moment of the monotonic clock or 0 for at once, number in the order of arrival, attempt)."""


class Waiting:
    """The attempts of one executor. Who uses it holds a lock."""

    def __init__(self) -> None:
        self._heap: list[Place] = []
        self._numbers: Final = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            heapq.heappush(self._heap, (attempt.claimed.starts_at, next(self._numbers), attempt))

    def take_due(self) -> Iterator[Place]:
        """What may start now, taken out."""
        now = monotonic()
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)

    def take_back(self, destinations: Collection[str] | None) -> list[Attempt]:
        """What waits (for these destinations, or at all), taken out: it is not to start here."""
        places, self._heap = self._heap, []
        taken: list[Place] = []
        for place in places:
            is_wanted = destinations is None or destination_of(place[2].claimed.route) in destinations
            (taken if is_wanted else self._heap).append(place)
        heapq.heapify(self._heap)
        return [attempt for _, _, attempt in taken]

    def seconds(self, most: float) -> float:
        """Until the next may start, at most `most`."""
        return min(most, max(0.0, self._heap[0][0] - monotonic())) if self._heap else most
