"""Dead letters: which there are, each with its replay, and which were discarded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from django.db.models import Exists, OuterRef

from connectors.operations.traced import TracedItem
from connectors.operations.work_filters import WorkFilter, all_dead, ids_of_source, without_replay, work_items
from projection.database.catalogue import chunks
from projection.models import WorkItem
from projection.states import State

IDS_A_QUERY: Final = 1000
RESTORED_AT_ONCE: Final = 100
"""Discarded dead letters of one page, which is one transaction where they are restored."""

Show = Literal["open", "replayed", "discarded", "all"]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead item and its replay, if it has one."""

    item: TracedItem
    replay_work_id: str | None
    replay_state: str | None


def dead_letters(chosen: WorkFilter, limit: int, show: Show = "open") -> list[DeadLetter]:
    """The newest dead items that the filter selects, at most `limit`. Two queries beside those of the filter.

    `show`: those that are neither discarded nor replayed, that have a replay, that are discarded, or all.
    """
    rows = work_items(replace(chosen, states=(State.DEAD,)))
    if show == "open":
        rows = without_replay(rows.filter(discarded_at=None))
    elif show == "replayed":
        rows = rows.filter(Exists(WorkItem.objects.filter(replay_of_work_id=OuterRef("work_id"))))
    elif show == "discarded":
        rows = rows.exclude(discarded_at=None)
    items = [TracedItem.of(row) for row in rows.order_by("-terminal_at", "-id")[:limit]]
    replays = _replays([item.work_id for item in items])
    return [DeadLetter(item, *replays.get(item.work_id, (None, None))) for item in items]


def discarded_pages(chosen: WorkFilter) -> Iterator[list[str]]:
    """WorkIds of all discarded dead letters that the filter selects, oldest first, page by page. Raises UnknownName."""
    rows = all_dead(replace(chosen, source="")).exclude(discarded_at=None)
    if chosen.source:
        rows = rows.filter(id__in=ids_of_source(replace(chosen, states=(State.DEAD,))))
    after = 0
    while page := list(rows.filter(id__gt=after).order_by("id").values_list("id", "work_id")[:RESTORED_AT_ONCE]):
        yield [work_id for _, work_id in page]
        after = page[-1][0]


def _replays(work_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Replayed WorkId → (WorkId, state) of its replay."""
    found: dict[str, tuple[str, str]] = {}
    for ids in chunks(work_ids, IDS_A_QUERY):
        rows = WorkItem.objects.filter(replay_of_work_id__in=ids).values_list("replay_of_work_id", "work_id", "state")
        found |= {str(of): (work_id, state) for of, work_id, state in rows}
    return found
