"""What a bulk job would come to as things stand: exact counts by the job's own decisions, in parts that each cost the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from connectors.operations import dead_letters
from connectors.operations.work_filters import WorkFilter, dead_items
from projection.bulk import jobs
from projection.bulk.job_rows import JobKind
from projection.bulk.steps import PAGE
from projection.database import clock
from projection.refusals import Refused
from projection.replay.decision import Deferred, Replayed, Result
from projection.replay.discard import Discarded, preview_discards
from projection.replay.preview import ReplayPreview

PAGES_A_PART: Final = 10
"""Pages of dead items (1,000 each) that one part looks through for members at most."""

Place = tuple[datetime, int]
"""(TerminalAt, id) of the last dead item that was looked at; the time is aware."""


@dataclass(slots=True)
class BulkPreview:
    """What a job would come to as things stand. The four counts make up `total`."""

    kind: JobKind
    possible: int = 0
    """Replayed (or discarded) at once."""
    deferred: int = 0
    """Replayed too, but behind another one of their source."""
    refused: Counter[str] = field(default_factory=Counter)
    """By code."""
    after_newer: int = 0
    """Of those replayed: how many would run after a newer item of their lane and source has succeeded (state could go backwards)."""

    @property
    def total(self) -> int:
        return self.possible + self.deferred + self.refused.total()

    def members(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "kind": self.kind.value,
            "total": self.total,
            "possible": self.possible,
            "deferred": self.deferred,
            "refused": dict(self.refused),
            "after_newer": self.after_newer,
        }

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """As `members` wrote it."""
        refused = Counter(members["refused"])
        return cls(JobKind(members["kind"]), members["possible"], members["deferred"], refused, members["after_newer"])

    def count(self, results: Sequence[Result | Discarded]) -> None:
        for result in results:
            self.possible += isinstance(result, Replayed | Discarded)
            self.deferred += isinstance(result, Deferred)
            if isinstance(result, Refused):
                self.refused[result.code] += 1

    def add(self, other: BulkPreview) -> None:
        self.possible += other.possible
        self.deferred += other.deferred
        self.refused += other.refused
        self.after_newer += other.after_newer


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of a preview came to, and where the next one begins. None: that was the last."""

    counts: BulkPreview
    looked_at: int
    """Dead items, members or not."""
    next: Place | None


def preview(kind: JobKind, chosen: WorkFilter, *, retarget: bool = False) -> BulkPreview:
    """Exact counts of what a job would do now, by the job's own decisions, without writing. Raises UnknownName.

    Bounded parts: about ten reads for each 1,000 dead items.
    """
    counts, replays = BulkPreview(kind), ReplayPreview()
    place: Place | None = beginning(chosen)
    through = clock.now()
    while place is not None:
        part = preview_part(kind, chosen, place, through, replays, retarget=retarget)
        counts.add(part.counts)
        place = part.next
    return counts


def beginning(chosen: WorkFilter) -> Place:
    """Where the first part begins."""
    return (chosen.since or jobs.EARLIEST, 0)


def preview_part(
    kind: JobKind, chosen: WorkFilter, place: Place, through: datetime, replays: ReplayPreview, *, retarget: bool
) -> Part:
    """The part behind `place`: at most 1,000 members, found among at most 10,000 dead items that died by `through` (aware).

    `replays` carries what earlier parts chose, and is added to. Items that are named by their WorkIds are one part. Raises UnknownName.
    """
    work_ids, looked_at, following = _look(kind, chosen, place, through)
    counts, known = BulkPreview(kind), len(replays.after_newer)
    if kind is JobKind.DISCARD:
        counts.count(list(preview_discards(work_ids).values()))
    else:
        counts.count(dead_letters.answer(replays, work_ids, retarget=retarget))
    counts.after_newer = len(replays.after_newer) - known
    return Part(counts, looked_at, following)


def _look(kind: JobKind, chosen: WorkFilter, place: Place, through: datetime) -> tuple[list[str], int, Place | None]:
    """Members of a part, how many dead items were looked at, and where the next part begins."""
    members = dead_items(chosen, unreplayed=kind is JobKind.REPLAY).order_by("lane_position", "id")
    if chosen.work:
        return list(members.values_list("work_id", flat=True)), len(chosen.work), None
    work_ids, looked_at = list[str](), 0
    for _ in range(PAGES_A_PART):
        limit = PAGE - len(work_ids)
        page = jobs.dead_page(place, through, limit)
        looked_at += len(page)
        if page:
            place = page[-1]
            work_ids += members.filter(id__in=[item for _, item in page]).values_list("work_id", flat=True)
        if len(page) < limit:
            return work_ids, looked_at, None
        if len(work_ids) >= PAGE:
            break
    return work_ids, looked_at, place
