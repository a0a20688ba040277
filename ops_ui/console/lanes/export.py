"""What the list of lanes exports as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ops_ui.console.lists.exports import Columns, Rows


def lanes(rows: Sequence[Any]) -> Rows:
    """Of `lane_reads.Lane`."""
    return Columns(
        rows,
        {
            "lane": lambda lane: lane.name,
            "account": lambda lane: lane.account,
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
