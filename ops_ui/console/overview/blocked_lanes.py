"""The lanes in which something has been blocked for longest: bounded, for the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from projection.database.catalogue import Sender
from projection.inspection import lane_reads
from projection.models import WorkItem

LOOKED_AT: Final = 2_000
"""Blocked items of the lowest ids that are looked through for the lanes they wait in."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class BlockedLane:
    """`since`: when its item that has waited for longest was made; `items`: how many of those looked at wait there."""

    key: str
    name: str
    since: datetime
    items: int


def longest(limit: int) -> list[BlockedLane]:
    """The lanes whose items were made first, of those that are blocked now. Three statements (ix_work_terminal)."""
    found = _sql.fetch("read_longest_blocked", looked_at=LOOKED_AT, limit=limit)
    if not found:
        return []
    items = {item.id: item for item in WorkItem.objects.filter(id__in=[row[1] for row in found])}
    names = lane_reads.lane_names(list(items.values()))
    return [BlockedLane(key, names[item], items[item].created_date, count) for key, item, count in found if item in items]
