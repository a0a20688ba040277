"""Slots of a rate limit: pure arithmetic in microseconds."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from projection.limits.rate_limits import AHEAD, JITTER, Bucket

NOW = datetime(2026, 11, 29, 10, 0, 0)
"""Naive, as the database gives it."""
SECOND = timedelta(seconds=1)


def bucket(rate: int, per: timedelta = SECOND, next_slot: datetime = NOW) -> Bucket:
    return Bucket(id=1, rate=rate, per=per, next_slot=next_slot, now=NOW, seen=1000.0)


@pytest.mark.parametrize("rate", [1, 3, 7, 10, 100, 333])
@pytest.mark.parametrize("per", [timedelta(milliseconds=100), SECOND, timedelta(seconds=10), timedelta(hours=1)])
def test_no_period_wherever_it_begins_sees_more_starts_than_the_rate_however_they_are_delayed(rate: int, per: timedelta) -> None:
    limited = bucket(rate, per)
    late = min(JITTER, per / 20)
    for begin in range(2 * rate):
        after_the_last_of_a_period = limited.slot(begin + rate)
        assert after_the_last_of_a_period >= limited.slot(begin) + per
        assert after_the_last_of_a_period >= limited.slot(begin) + late + per - timedelta(microseconds=1)


def test_slots_that_are_taken_one_by_one_are_those_that_are_taken_at_once() -> None:
    at_once = bucket(3)
    one_by_one, step = [], at_once
    for _ in range(30):
        one_by_one.append(step.slot(0))
        step = bucket(3, next_slot=step.slot(1))
    differences = [abs(a - at_once.slot(n)) for n, a in enumerate(one_by_one)]
    assert max(differences) <= timedelta(microseconds=30)


def test_a_limit_that_rested_gives_no_more_than_one_that_did_not() -> None:
    rested = bucket(10, next_slot=NOW - timedelta(days=1))
    assert rested.free(100) == bucket(10).free(100) == 5
    assert rested.slot(0) == NOW


def test_an_exhausted_limit_has_no_slot_before_its_next() -> None:
    assert bucket(10, next_slot=NOW + AHEAD).free(100) == 1
    assert bucket(10, next_slot=NOW + AHEAD + timedelta(microseconds=1)).free(100) == 0
    assert bucket(10, next_slot=NOW + timedelta(seconds=0.3)).starts(2) == pytest.approx([1000.3, 1000.405])


def test_never_more_than_asked_for() -> None:
    assert bucket(1000).free(3) == 3
