"""What retention is asked and answers: the terms, how many rows went, and what a dry run remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from projection.database import clock
from projection.retention.id_set import IdSet
from projection.rows import WorkRow
from projection.states import TERMINAL, State


@dataclass(frozen=True, slots=True)
class Terms:
    """Ends before `before` (`dead_before` for dead items that nobody discarded) are past their term; aware times."""

    before: datetime
    dead_before: datetime

    @classmethod
    def of(cls, days: int, dead_days: int) -> Terms:
        """Terms counted back from the database's clock. One query."""
        now = clock.now()
        return cls(now - timedelta(days=days), now - timedelta(days=max(days, dead_days)))

    def is_over(self, row: WorkRow) -> bool:
        """Whether an item is terminal and past its term."""
        if row.state not in TERMINAL or row.terminal_at is None:
            return False
        return row.terminal_at < (self.dead_before if row.state is State.DEAD and row.discarded_at is None else self.before)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows went (or, in a dry run, would go). `finished` False: it was stopped, and the rest waits for the next run."""

    events: int = 0
    work_items: int = 0
    finished: bool = True

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.events + other.events, self.work_items + other.work_items, self.finished and other.finished)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a dry run found so far, so that nothing is counted twice and later steps see what would be gone by then."""

    events: IdSet = field(default_factory=IdSet)
    work_items: IdSet = field(default_factory=IdSet)
