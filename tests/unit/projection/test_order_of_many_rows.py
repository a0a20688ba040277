"""Ordering 20,000 rows of mixed kinds is no quadratic work: twice the rows, at most 2.4 times the steps
(docs/protocol.md#bounded-order).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from projection.order import Membership, Place, precedes, replay_order

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 20_000


class CountingTime(datetime):
    """A time that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: Any) -> bool:
        CountingTime.compared += 1
        return super().__lt__(other)

    def __eq__(self, other: object) -> bool:
        CountingTime.compared += 1
        return super().__eq__(other)

    __hash__ = datetime.__hash__


def mixed(count: int) -> list[Place]:
    """Rows with and without ordinals, times out of step with ordinals here and there."""
    chance = random.Random(7)
    rows = []
    for number in range(1, count + 1):
        moment = START + timedelta(seconds=number + chance.choice((0, 0, 0, 50, -50)))
        created = CountingTime.fromtimestamp(moment.timestamp(), tz=UTC)
        rows.append(Place(number, 0 if chance.random() < 0.5 else number, created, 0))
    chance.shuffle(rows)
    return rows


def place_all(rows: list[Place]) -> None:
    membership = Membership(rows[::20])
    for row in rows:
        membership.owner(row)


def steps(work: Callable[[list[Place]], object], count: int) -> int:
    """Comparisons of times and calls of functions: a measure of work that no load of the machine changes."""
    rows = mixed(count)
    calls = 0

    def count_call(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    CountingTime.compared = 0
    sys.setprofile(count_call)
    try:
        work(rows)
    finally:
        sys.setprofile(None)
    return CountingTime.compared + calls


@pytest.mark.parametrize("work", [replay_order, place_all])
def test_doubling_the_rows_costs_at_most_2_4_times_the_steps(work: Callable[[list[Place]], object]) -> None:
    half, whole = steps(work, ROWS // 2), steps(work, ROWS)
    assert half > ROWS // 2
    assert whole <= 2.4 * half


def test_20000_rows_keep_every_edge_that_is_in_no_cycle() -> None:
    rows = mixed(ROWS)
    ordered = replay_order(rows)
    assert sorted(row.event_id for row in ordered) == list(range(1, ROWS + 1))
    far = 200  # rows so far apart are in no common cycle: times are out of step by at most 100 s
    for left, right in zip(ordered, ordered[far:], strict=False):
        assert precedes(left, right)
