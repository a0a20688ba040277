"""What retention is asked and answers: the cut-offs, how many rows went, and what a dry run remembers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from projection.database import clock
from projection.rows import WorkRow
from projection.states import TERMINAL, State

_CHUNK: Final = 1024
"""Ids of one bit mask."""


@dataclass(frozen=True, slots=True)
class CutOffs:
    """Ends before `before` (`dead_before` for dead items that nobody discarded) are past their term; aware times."""

    before: datetime
    dead_before: datetime

    @classmethod
    def of(cls, days: int, dead_days: int) -> CutOffs:
        """CutOffs counted back from the database's clock. One query."""
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


class IdSet:
    """A set of row ids at one bit each where they lie close together: what a dry run remembers of millions of rows.

    500,000 that follow each other take about 100 KiB.
    """

    def __init__(self) -> None:
        self._chunks: dict[int, int] = {}

    def add(self, one: int) -> bool:
        """Whether it was not there yet."""
        chunk, bit = one // _CHUNK, 1 << one % _CHUNK
        known = self._chunks.get(chunk, 0)
        self._chunks[chunk] = known | bit
        return not known & bit

    def __contains__(self, one: int) -> bool:
        return bool(self._chunks.get(one // _CHUNK, 0) & 1 << one % _CHUNK)

    def __iter__(self) -> Iterator[int]:
        """Ascending."""
        for chunk in sorted(self._chunks):
            mask = self._chunks[chunk]
            yield from (chunk * _CHUNK + bit for bit in range(_CHUNK) if mask >> bit & 1)

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self._chunks.values())


@dataclass(frozen=True, slots=True)
class Preview:
    """What a dry run found so far, so that nothing is counted twice and later steps see what would be gone by then."""

    events: IdSet = field(default_factory=IdSet)
    work_items: IdSet = field(default_factory=IdSet)
