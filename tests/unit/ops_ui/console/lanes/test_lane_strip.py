"""The strip of a lane: head first, then lane order; each kind of item with its own word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ops_ui.console.lanes.strip import SIGNS, WORDS, head_of, strip
from projection.models import WorkItem

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def item(number: int, state: str, **columns: Any) -> WorkItem:
    values: dict[str, Any] = {"id": number, "work_id": f"w{number}", "state": state, "run_after": NOON, "lane_position": number}
    return WorkItem(**values | columns)


def shown(*items: WorkItem) -> list[tuple[int, str, bool]]:
    return [(cell.item.id, cell.kind, cell.is_head) for cell in strip(items, NOON).cells]


def test_the_holder_is_in_front_of_what_was_passed_over() -> None:
    settling = item(1, "pending", run_after=NOON + timedelta(seconds=9))
    holder = item(2, "retry", lane_holder_key="lane", run_after=NOON + timedelta(hours=1))
    due = item(3, "pending")
    assert shown(settling, holder, due) == [(2, "retry", True), (1, "settling", False), (3, "due", False)]


def test_without_a_holder_the_first_that_is_not_blocked_is_in_front() -> None:
    assert shown(item(1, "blocked"), item(2, "pending")) == [(2, "due", True), (1, "blocked", False)]
    assert head_of([item(1, "blocked")]) is None
    assert shown() == []


def test_a_queued_successor_is_told_from_other_blocked_work() -> None:
    running = item(1, "processing", lane_holder_key="lane", projection_key="p", projection_active_key="p")
    successor = item(2, "blocked", projection_key="p", projection_active_key=None)
    other = item(3, "blocked", projection_key="q", projection_active_key="q")
    assert [kind for _, kind, _ in shown(running, successor, other)] == ["processing", "queued", "blocked"]


def test_the_legend_counts_each_kind_once() -> None:
    picture = strip([item(1, "processing", lane_holder_key="lane"), item(2, "blocked"), item(3, "blocked")], NOON)
    assert picture.legend == [("processing", "▶", "running", 1), ("blocked", "■", "blocked by earlier work", 2)]
    assert WORDS.keys() == SIGNS.keys()
