"""Order of two events of one scope, and of many (protocol 3).

Two rows with ordinals compare by (EnqueueOrdinal, Id); if either has none (rows from before ordinals) by (CreatedDate,
DeliverySequence, Id). Mixed rows make this non-transitive, so many are sorted topologically along the pairwise edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands: its order snapshot. `ordinal` 0 = from before ordinals existed."""

    event_id: int
    ordinal: int
    created: datetime
    sequence: int


def precedes(left: Place, right: Place) -> bool:
    """Whether `left` comes strictly before `right`."""
    if left.ordinal and right.ordinal:
        return (left.ordinal, left.event_id) < (right.ordinal, right.event_id)
    return (left.created, left.sequence, left.event_id) < (right.created, right.sequence, right.event_id)


def latest(places: Iterable[Place]) -> Place:
    """The last of several by pairwise comparison, in the given sequence. Raises TypeError for none."""
    return reduce(lambda best, place: place if precedes(best, place) else best, places)
