"""Order of two events of one scope, and of many (docs/protocol.md#order).

Two rows with ordinals compare by (EnqueueOrdinal, Id); if either has none (rows from before ordinals) by ingress time (CreatedDate,
DeliverySequence, Id). With mixed rows this is not transitive: A < B and B < C do not make A < C. So many rows are replayed
topologically along the pairwise edges, and what several generations could claim is decided by membership, not by bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands: its order snapshot. `ordinal` 0 = from before ordinals existed."""

    event_id: int
    ordinal: int
    created: datetime
    sequence: int

    @property
    def ingress(self) -> tuple[datetime, int, int]:
        """Order by ingress time."""
        return self.created, self.sequence, self.event_id

    @property
    def admission(self) -> tuple[int, int]:
        """Order by admission, for rows with an ordinal."""
        return self.ordinal, self.event_id


def precedes(left: Place, right: Place) -> bool:
    """Whether `left` comes strictly before `right`."""
    if left.ordinal and right.ordinal:
        return left.admission < right.admission
    return left.ingress < right.ingress


def latest(places: Iterable[Place]) -> Place:
    """The last of several by pairwise comparison, in the given sequence. Raises TypeError for none."""
    return reduce(lambda best, place: place if precedes(best, place) else best, places)


def replay_order(places: Iterable[Place]) -> list[Place]:
    """The places along their pairwise edges; only rows of a true cycle among themselves by ingress time. n log n.

    The edges form a tournament (every two rows are ordered), so the rows sorted by how many others they precede fall into its strongly
    connected components in order: a prefix of k rows is complete exactly when together they precede all that they can.
    """
    rows = list(places)
    if all(row.ordinal for row in rows):
        return sorted(rows, key=lambda row: row.admission)
    followers = _followers(rows)
    ranked = sorted(rows, key=lambda row: (-followers[row.event_id], row.ingress))
    ordered: list[Place] = []
    component: list[Place] = []
    wins = 0
    for count, row in enumerate(ranked, start=1):
        component.append(row)
        wins += followers[row.event_id]
        if wins == count * (count - 1) // 2 + count * (len(rows) - count):
            ordered += sorted(component, key=lambda one: one.ingress)
            component = []
    return ordered


def _followers(rows: Sequence[Place]) -> dict[int, int]:
    """Event id → how many of the rows it precedes."""
    by_ingress = sorted(row.ingress for row in rows)
    unnumbered = sorted(row.ingress for row in rows if not row.ordinal)
    numbered = sorted(row.admission for row in rows if row.ordinal)
    found: dict[int, int] = {}
    for row in rows:
        if row.ordinal:
            later_unnumbered = len(unnumbered) - bisect_left(unnumbered, row.ingress)
            found[row.event_id] = later_unnumbered + len(numbered) - bisect_left(numbered, row.admission) - 1
        else:
            found[row.event_id] = len(by_ingress) - bisect_left(by_ingress, row.ingress) - 1
    return found


class Membership:
    """Which of a projection's ordinary generations represents an event: the first in history whose selection is not before it.

    Built from the generations' selections; each question costs log m. Where all rows have ordinals this is the usual range.
    """

    def __init__(self, selections: Iterable[Place]) -> None:
        self.history = replay_order(selections)
        """Selections, oldest generation first."""
        numbered = [(place.admission if place.ordinal else (0, 0)) for place in self.history]
        self._numbered = list(accumulate(numbered, max))
        self._all = list(accumulate((place.ingress for place in self.history), max))
        self._unnumbered_at = [index for index, place in enumerate(self.history) if not place.ordinal]
        self._unnumbered = list(accumulate((self.history[index].ingress for index in self._unnumbered_at), max))

    def owner(self, event: Place) -> Place | None:
        """Selection of the generation that represents the event; None = nothing does."""
        if not event.ordinal:
            index = bisect_left(self._all, event.ingress)
        else:
            by_ordinal = bisect_left(self._numbered, event.admission)
            by_time = bisect_left(self._unnumbered, event.ingress)
            index = min(by_ordinal, self._unnumbered_at[by_time] if by_time < len(self._unnumbered_at) else len(self.history))
        return self.history[index] if index < len(self.history) else None
