"""What a settling time would have made of arrivals that did happen: fewer executions, for a wait that is added. Pure functions.

A burst opens with an event and takes every later one of its source before the deadline, which is fixed by the first
(docs/protocol.md#settle). Executions that coalesce further because one runs, waits or is paused are not counted: the truth is at
most this many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of one settling time, in seconds: executions of so many events, and how long events wait for the end of their burst."""

    settle: float
    events: int
    executions: int
    mean_delay: float
    """Over all events, seconds: the first of a burst waits the whole settling time, later ones what is left of it."""

    @property
    def longest_delay(self) -> float:
        """Seconds, of any event."""
        return self.settle if self.events else 0.0

    @property
    def saved(self) -> float:
        """Share of the executions that one for each event would have taken, 0 to 1."""
        return 1 - self.executions / self.events if self.events else 0.0


def estimate(sources: Iterable[Sequence[float]], settle: float) -> Estimate:
    """`sources`: for each source record the arrival times of its events, in seconds, in any order. `settle` 0: each runs at once."""
    events = executions = 0
    waited = 0.0
    for arrivals in sources:
        deadline = float("-inf")
        for at in sorted(arrivals):
            if settle <= 0 or at >= deadline:
                deadline = at + max(settle, 0.0)
                executions += 1
            waited += deadline - at
            events += 1
    return Estimate(settle, events, executions, waited / events if events else 0.0)
