"""The breaker's decision: a pure function of a destination's health and what attempts say of it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from projection.facts import ALIVE, ITEM_ONLY, Outage
from projection.limits import circuit_breaker
from projection.limits.circuit_breaker import Health, Outcome, after

NOW = datetime(2026, 11, 29, 10, 0, 0)
CERTAIN = Outage("refused", certain=True)
PERHAPS = Outage("500", certain=False)


def in_the_middle() -> float:
    return 0.5


def health_after(*outcomes: Outcome, health: Health = Health(), now: datetime = NOW) -> Health:  # noqa: B008 - it is frozen
    return after(health, outcomes, now, chance=in_the_middle)


def failures(count: int, outage: Outage = PERHAPS) -> list[Outcome]:
    return [(f"item-{n}", outage) for n in range(count)]


def opened() -> Health:
    return health_after(*failures(circuit_breaker.FAILURES))


def seconds(health: Health, now: datetime = NOW) -> float:
    assert health.parked_until is not None
    return (health.parked_until - now).total_seconds()


def test_failures_in_a_row_open_it_and_fewer_do_not() -> None:
    assert health_after(*failures(circuit_breaker.FAILURES - 1)).state == "failing"
    assert (opened().state, seconds(opened())) == ("open", circuit_breaker.FIRST_PAUSE_SECONDS)
    assert opened().last_error == "500"


def test_a_success_between_them_keeps_it_closed() -> None:
    outcomes = [*failures(circuit_breaker.FAILURES - 1), ("fine", ALIVE), *failures(circuit_breaker.FAILURES - 1)]
    assert health_after(*outcomes).state == "failing"


def test_one_item_alone_opens_it_only_where_it_cannot_be_at_fault() -> None:
    poison: list[Outcome] = [("poison", PERHAPS)] * 50
    assert (health_after(*poison).state, health_after(*poison).failures) == ("failing", 1)
    assert health_after(*[("any", CERTAIN)] * circuit_breaker.FAILURES).state == "open"


def test_what_was_under_way_when_it_opened_makes_no_pause_longer() -> None:
    assert health_after(*failures(3), health=opened()).parked_until == opened().parked_until


def test_each_pause_is_twice_as_long_up_to_a_limit() -> None:
    health, pauses = opened(), []
    for number in range(12):
        pauses.append(seconds(health, NOW + number * timedelta(hours=1)))
        now = NOW + (number + 1) * timedelta(hours=1)
        health = health_after((f"probe-{number}", PERHAPS), health=health, now=now)
    assert pauses[:4] == [5, 10, 20, 40]
    assert max(pauses) == pauses[-1] == circuit_breaker.LONGEST_PAUSE_SECONDS
    assert health.parked_at == NOW


def test_a_success_closes_it_and_the_next_pause_is_short_again() -> None:
    closed = health_after(("probe", ALIVE), health=opened(), now=NOW + timedelta(minutes=1))
    assert (closed.state, closed.failures, closed.openings, closed.parked_until) == ("closed", 0, 0, None)


def test_an_item_that_is_let_through_and_fails_parks_it_anew_though_its_time_to_tell_is_not_over() -> None:
    trying = Health("half_open", 5, 1, "item", NOW, NOW + timedelta(seconds=circuit_breaker.PROBE_SECONDS))
    again = health_after(("item-9", PERHAPS), health=trying)
    assert (again.state, seconds(again)) == ("open", 10)


@pytest.mark.parametrize("outage", [Outage("429", certain=True, retry_after=7.0), Outage("500", certain=False, retry_after=7.0)])
def test_a_retry_after_parks_at_once_for_that_time(outage: Outage) -> None:
    asked = health_after(("item", outage))
    assert (asked.state, seconds(asked)) == ("asked", 7)


def test_the_longest_retry_after_holds_and_a_success_on_its_way_does_not_end_it() -> None:
    short, long = Outage("429", certain=True, retry_after=1.0), Outage("429", certain=True, retry_after=60.0)
    asked = health_after(("a", long), ("b", short), ("c", ALIVE))
    assert (asked.state, seconds(asked), asked.failures) == ("asked", 60, 0)
    assert health_after(("d", ALIVE), health=asked, now=NOW + timedelta(seconds=61)).state == "closed"


def test_pauses_vary_a_little_so_that_not_all_come_back_at_once() -> None:
    outcomes = failures(circuit_breaker.FAILURES)
    shortest, longest = (seconds(after(Health(), outcomes, NOW, chance=lambda x=x: x)) for x in (0.0, 1.0))
    assert (shortest, longest) == pytest.approx((4.5, 5.5))


def test_one_item_that_keeps_failing_parks_for_a_short_time_only() -> None:
    health, longest = health_after(*[("any", CERTAIN)] * circuit_breaker.FAILURES), 0.0
    for number in range(1, 12):
        now = NOW + number * timedelta(hours=1)
        health = health_after(("any", CERTAIN), health=health, now=now)
        longest = max(longest, seconds(health, now))
    assert longest == circuit_breaker.LONGEST_PAUSE_OF_ONE_SECONDS


def test_what_is_about_the_item_only_parks_nothing_and_the_next_success_is_written_down() -> None:
    blamed = health_after(("poison", ITEM_ONLY), health=Health(succeeded_at=NOW))
    assert (blamed.state, blamed.failures, blamed.parked_until, blamed.last_work_id) == ("failing", 0, None, "poison")
    later = NOW + timedelta(seconds=9)
    fine = health_after(("fine", ALIVE), health=blamed, now=later)
    assert (fine.state, fine.succeeded_at) == ("closed", later)


def test_an_item_that_was_let_through_and_is_at_fault_lets_another_try_at_once() -> None:
    trying = Health("half_open", 5, 1, "item", NOW, NOW + timedelta(seconds=circuit_breaker.PROBE_SECONDS))
    assert not health_after(("poison", ITEM_ONLY), health=trying).is_parked(NOW)


def test_a_retry_after_of_an_item_that_was_let_through_holds_and_not_its_time_to_tell() -> None:
    trying = Health("half_open", 9, 1, "item", NOW, NOW + timedelta(seconds=circuit_breaker.PROBE_SECONDS))
    for number in range(9):
        asked = health_after((f"item-{number}", Outage("503", certain=True, retry_after=2.0)), health=trying)
        assert (asked.state, seconds(asked)) == ("asked", 2)
