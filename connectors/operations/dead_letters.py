"""Dead letters: which there are, each with its replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from connectors.operations.traced import TracedItem
from connectors.operations.work_filters import WorkFilter, work_items
from projection.database.catalogue import chunks
from projection.models import WorkItem
from projection.states import State

IDS_A_QUERY: Final = 1000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead item and its replay, if it has one."""

    item: TracedItem
    replay_work_id: str | None
    replay_state: str | None


def dead_letters(chosen: WorkFilter, limit: int) -> list[DeadLetter]:
    """The newest undiscarded dead items that the filter selects, at most `limit`. Two queries beside those of the filter."""
    rows = work_items(replace(chosen, states=(State.DEAD,))).filter(discarded_at=None).order_by("-terminal_at", "-id")[:limit]
    items = [TracedItem.of(row) for row in rows]
    replays = _replays([item.work_id for item in items])
    return [DeadLetter(item, *replays.get(item.work_id, (None, None))) for item in items]


def _replays(work_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Replayed WorkId → (WorkId, state) of its replay."""
    found: dict[str, tuple[str, str]] = {}
    for ids in chunks(work_ids, IDS_A_QUERY):
        rows = WorkItem.objects.filter(replay_of_work_id__in=ids).values_list("replay_of_work_id", "work_id", "state")
        found |= {str(of): (work_id, state) for of, work_id, state in rows}
    return found
