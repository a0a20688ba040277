"""A process that meets its fault at every commit point of what it does, before and after, one process after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.children import Child, Command, Nursery
from tests.faults.orders import KILL, SIDES, At, Side

MOST_POINTS = 200
BY_THE_CLOCK = frozenset({"managers.extend_leases"})
"""Points of the heartbeat's thread, which a quick process meets or does not."""


@dataclass
class EveryPoint:
    """Iterating yields each process after its fault, with the work prepared again for each; the body lets the system go on and checks.

    `commands()` prepares the work of one process and says what it runs. The commit points are those that the process itself meets: the
    fault comes before its first one, before its second one and so on until a process comes to its end without, then likewise after each.
    """

    nursery: Nursery
    commands: Callable[[], Sequence[Command]]
    options: dict[str, Any] = field(default_factory=dict)
    signal: int = KILL
    sides: Sequence[Side] = SIDES
    count: int = 0
    """Processes that met their fault."""
    points: set[str] = field(default_factory=set)
    """What became durable at the points where they did."""

    def __iter__(self) -> Iterator[Child]:
        for side in self.sides:
            hit: set[str] = set()
            for number in range(1, MOST_POINTS):
                child = self._run(At(number, side, self.signal), hit)
                yield child
                if len(child.points) < number:
                    break
            else:
                raise AssertionError("it has no end")
            # Threads take turns, so the place of a point differs from process to process.
            for room in sorted(rooms(child.points) - rooms(hit) - BY_THE_CLOCK):
                yield self._run(At(1, side, self.signal, f"{room}:"), hit)
            assert rooms(child.points) - BY_THE_CLOCK <= rooms(hit), f"never {side} {set(child.points) - hit}"
            self.points |= hit

    def _run(self, at: At, hit: set[str]) -> Child:
        """A process with this fault; what it met is added to `hit`."""
        child = self.nursery.run(*self.commands(), at=at, **self.options)
        mine = [point for point in child.points if point.startswith(at.room)]
        came_to_it = len(mine) >= at.number
        if came_to_it:
            self.count += 1
            hit.add(mine[at.number - 1])
        if self.signal == KILL or not came_to_it:
            assert child.was_killed == came_to_it, child.said
        return child


def rooms(points: Iterable[str]) -> set[str]:
    """Verbs of the units, or functions, that the commit points belong to."""
    return {point.split(":")[0] for point in points}
