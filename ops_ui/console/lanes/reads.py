"""Pages of lanes as the console turns them."""

from __future__ import annotations

from ops_ui.console.lists.keyset import PAGE_SIZE, Cursor, Page
from projection.inspection import lane_reads


def page(chosen: str, cursor: Cursor | None, size: int = PAGE_SIZE) -> Page:
    """The lanes at `cursor`; `chosen` as in `lane_reads.lane_page`."""
    found = lane_reads.lane_page(chosen, (cursor.side, cursor.id) if cursor else None, size=size)
    rows = list(found.lanes)
    return Page(
        rows,
        previous=Cursor("before", rows[0].id) if found.has_previous else None,
        next=Cursor("after", rows[-1].id) if found.has_next else None,
    )
