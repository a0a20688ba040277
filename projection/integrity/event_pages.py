"""Walking all events in ranges of ids: bounds the time and memory of one read, whatever the table holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from projection.database.catalogue import fetch

PAGE_IDS: Final = 50_000
"""Ids of one range; what a sweep looks for in it is usually nothing."""


def event_pages() -> Iterator[tuple[int, int]]:
    """(after, through) of each range up to the newest event there is now; none when there are no events. One query."""
    last = fetch("read_last_event_id")[0][0]
    for after in range(0, last, PAGE_IDS):
        yield after, after + PAGE_IDS
