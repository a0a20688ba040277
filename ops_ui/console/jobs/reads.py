"""Reads of bulk jobs for the console: the items of one with what they were and what became of their replays."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from django.db.models import Count

from ops_ui.console.jobs.progress import Became
from ops_ui.console.lists.keyset import PAGE_SIZE
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobItemRow
from projection.database.catalogue import chunks
from projection.models import WorkItem

REPLAYS_COUNTED: Final = 1000
"""Replays of a job whose states its page counts."""
IDS_AT_ONCE: Final = 500
"""MariaDB makes a subquery of an IN with 1,000 values."""
Place = tuple[int, int]
"""(Place, WorkItemId): items go by it, in lane order."""
START: Final[Place] = (-1, 0)
_PLACE: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Result:
    """An item, its dead letter (None: not retained any more) and the replay that it made, as that stands now."""

    item: JobItemRow
    dead: WorkItem | None
    replay: WorkItem | None


@dataclass(frozen=True, slots=True)
class ItemPage:
    results: list[Result]
    next: str | None
    """Where the next page begins, as `parse` reads it."""


def parse(text: str) -> Place:
    """A place of a URL; the beginning for an empty or damaged one."""
    found = _PLACE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else START


def results(job_id: int, state: ItemState | None, after: Place, size: int = PAGE_SIZE) -> ItemPage:
    """A page of items in lane order, of one outcome or of all: one query (ux_job_item_state), two for what is beside them."""
    items = jobs.items(job_id, (state,) if state else tuple(ItemState), limit=size + 1, after=after)
    shown = items[:size]
    last = f"{shown[-1].place}-{shown[-1].work_item_id}" if len(items) > size else None
    return ItemPage(_beside(shown), last)


def became(job_id: int) -> Became:
    """What the first replays of a job are now. One query for their ids, one for each 500 of them."""
    items = jobs.items(job_id, (ItemState.DONE,), limit=REPLAYS_COUNTED + 1)
    made = [item.replay_work_id for item in items[:REPLAYS_COUNTED] if item.replay_work_id]
    states: Counter[str] = Counter()
    for some in chunks(made, IDS_AT_ONCE):
        rows = WorkItem.objects.filter(work_id__in=some).order_by().values_list("state")
        states.update(dict(rows.annotate(rows=Count("id"))))
    return Became(len(made), dict(states), is_cut=len(items) > REPLAYS_COUNTED)


def _beside(items: list[JobItemRow]) -> list[Result]:
    rows = WorkItem.objects.only("id", "work_id", "state", "source_lane", "route_id")
    dead = {row.id: row for row in rows.filter(id__in=[item.work_item_id for item in items])}
    made = [item.replay_work_id for item in items if item.replay_work_id]
    replays = {row.work_id: row for row in rows.filter(work_id__in=made)}
    return [Result(item, dead.get(item.work_item_id), replays.get(item.replay_work_id or "")) for item in items]
