"""What the list of lanes exports as a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ops_ui.console.lanes import reads as lane_reads
from ops_ui.console.lists.exports import Columns, Rows
from ops_ui.console.lists.keyset import Cursor, Page
from projection.states import State


def lanes(rows: Sequence[Any]) -> Rows:
    """Of `lane_reads.Lane`."""
    return Columns(
        rows,
        {
            "lane": lambda lane: lane.name,
            "lane_key": lambda lane: lane.key,
            "state": lambda lane: lane.head and lane.head.state,
            "work_id": lambda lane: lane.head and lane.head.work_id,
            "attempts": lambda lane: lane.head and lane.head.attempts,
            "max_attempts": lambda lane: lane.head and lane.head.max_attempts,
            "live_items": lambda lane: lane.depth,
            "run_after": lambda lane: lane.head and lane.head.run_after,
            "waiting_since": lambda lane: lane.head and lane.head.created_date,
            "held_by": lambda lane: lane.hold and lane.hold.held_by,
            "held_at": lambda lane: lane.hold and lane.hold.held_at,
            "hold_reason": lambda lane: lane.hold and lane.hold.reason,
        },
    )


def lane_pages(chosen: str) -> Callable[[Cursor | None, int], Page]:
    """The reader of the lanes whose head is in a state, of the held ones (`held`), or of all."""
    if chosen == "held":
        return lane_reads.held
    states = (State(chosen),) if chosen else lane_reads.FRONT_STATES

    def read(cursor: Cursor | None, size: int) -> Page:
        found = lane_reads.heads(states, cursor, size)
        return Page(lane_reads.lanes(found.rows), found.previous, found.next)

    return read
