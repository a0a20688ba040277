"""The estimate of coalescing: executions and added delay of a settling time over arrivals."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.routing.dry_run import estimate

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How fast a busy machine makes up examples says nothing about them."""
ARRIVALS = st.lists(st.lists(st.integers(0, 300).map(float), max_size=12), max_size=5)


def test_the_deadline_is_fixed_by_the_first_event_and_later_ones_do_not_move_it() -> None:
    found = estimate([[0, 3, 4.9, 5, 9.9, 20]], 5)
    assert (found.events, found.executions) == (6, 3)  # [0 3 4.9] [5 9.9] [20]: at the deadline itself a new burst opens
    assert found.mean_delay == pytest.approx((5 + 2 + 0.1 + 5 + 0.1 + 5) / 6)
    assert found.longest_delay == 5
    assert found.saved == 0.5


def test_sources_do_not_coalesce_with_each_other_and_the_order_of_arrivals_does_not_matter() -> None:
    assert estimate([[2, 1], [1.5]], 10).executions == 2


def test_without_a_settling_time_each_event_runs_at_once() -> None:
    found = estimate([[1, 1, 1], [2]], 0)
    assert (found.executions, found.mean_delay, found.saved) == (4, 0, 0)


def test_no_event_is_no_execution() -> None:
    found = estimate([], 5)
    assert (found.events, found.executions, found.mean_delay, found.longest_delay, found.saved) == (0, 0, 0, 0, 0)


@unhurried
@given(ARRIVALS, st.integers(1, 100), st.integers(1, 100))
def test_a_longer_settling_time_never_takes_more_executions(sources: list[list[float]], shorter: int, more: int) -> None:
    first, second = estimate(sources, shorter), estimate(sources, shorter + more)
    assert second.executions <= first.executions
    assert sum(1 for one in sources if one) <= second.executions <= second.events == first.events
    assert 0 <= first.mean_delay <= shorter


@unhurried
@given(ARRIVALS, st.integers(1, 100))
def test_every_event_waits_for_the_end_of_exactly_one_burst(sources: list[list[float]], settle: int) -> None:
    """Counted another way: an event opens a burst when none that is open covers it."""
    openings = 0
    for arrivals in sources:
        bursts: list[float] = []
        for at in sorted(arrivals):
            if not any(opened <= at < opened + settle for opened in bursts):
                bursts.append(at)
        openings += len(bursts)
    assert estimate(sources, settle).executions == openings
