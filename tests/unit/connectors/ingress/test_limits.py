"""Token buckets: an average over time, a burst after a pause, and how long to wait."""

from __future__ import annotations

import pytest

from connectors.ingress.limits import Bucket


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_of_the_count_then_one_for_each_part_of_the_period() -> None:
    clock = Clock()
    bucket = Bucket(4, 2.0, clock)
    assert [bucket.wait(1) for _ in range(4)] == [0.0] * 4
    assert bucket.wait(1) == pytest.approx(0.5)
    clock.now = 0.25
    assert bucket.wait(1) == pytest.approx(0.25)
    clock.now = 0.5
    assert (bucket.wait(1), bucket.wait(1)) == (0.0, pytest.approx(0.5))
    clock.now = 1000.0
    assert [bucket.wait(1) for _ in range(5)] == [0.0] * 4 + [pytest.approx(0.5)]


def test_a_look_takes_nothing() -> None:
    bucket = Bucket(1, 10.0, Clock())
    assert [bucket.wait(0) for _ in range(5)] == [0.0] * 5
    assert bucket.wait(1) == 0.0
    assert bucket.wait(0) == pytest.approx(10.0)


def test_less_than_one_in_a_period_still_lets_one_through() -> None:
    """Half of 1/10s, for one of two processes."""
    clock = Clock()
    bucket = Bucket(0.5, 10.0, clock)
    assert bucket.wait(1) == 0.0
    assert bucket.wait(1) == pytest.approx(20.0)
    clock.now = 20.0
    assert bucket.wait(1) == 0.0
