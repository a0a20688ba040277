"""Events per generation: into how few runs the newest events went. A bounded sample; replays are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from projection.database.catalogue import Sender, chunks
from projection.models import WorkItem
from projection.states import TERMINAL

SAMPLE: Final = 200
"""Newest ended generations of the sample. Each is an index look-up, and each has its events counted."""
COUNTED: Final = 101
"""Events of one generation that are counted; a longer range is "over 100"."""
BUCKETS: Final = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 25), (26, 100), (101, COUNTED))
PIECES_A_STATEMENT: Final = 100

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Generations of the sample that had so many events; `share` is a percentage of the largest bucket."""

    title: str
    generations: int
    share: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """`events` is what was counted; `is_more`: a generation of the sample has more than is counted of one."""

    buckets: tuple[Bucket, ...]
    generations: int
    events: int
    is_more: bool

    @property
    def average(self) -> float:
        return self.events / self.generations if self.generations else 0.0


def newest() -> Histogram:
    """The histogram of the newest ended generations. Three or four statements (ix_work_terminal, ix_work_coverage, ix_event_range)."""
    rows = _sql.fetch_each("read_newest_ended", [(state.value, SAMPLE) for state in sorted(TERMINAL)])
    ids = [item for item, _ in sorted(rows, key=lambda row: (row[1], row[0]), reverse=True)[:SAMPLE]]
    bounds = WorkItem.objects.read_lower_bounds(ids) if ids else []
    asked = [(item, key, lower or 0, own, COUNTED) for item, key, own, lower, mixed in bounds if not mixed]
    counts: list[int] = []
    for some in chunks(asked, PIECES_A_STATEMENT):
        counts += [count for _, count in _sql.fetch_each("read_part_of_inputs", some)]
    return histogram(count for count in counts if count)


def histogram(counts: Iterable[int]) -> Histogram:
    """From the number of events of each generation, counted up to COUNTED. A function of its arguments alone."""
    all_of = list(counts)
    sizes = [sum(low <= count <= high for count in all_of) for low, high in BUCKETS]
    most = max(sizes, default=0) or 1
    made = (Bucket(_title(low, high), size, round(100 * size / most, 1)) for (low, high), size in zip(BUCKETS, sizes, strict=True))
    return Histogram(tuple(made), len(all_of), sum(all_of), any(count >= COUNTED for count in all_of))


def _title(low: int, high: int) -> str:
    if high == COUNTED:
        return f"over {low - 1}"
    return str(low) if low == high else f"{low} to {high}"
