"""After the database kept one request waiting in vain, the next ones do not wait as well; then one at a time tries again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import OperationalError

from connectors.ingress.outage import HOLD_SECONDS, MOST_LOCKED, DatabaseAway, DeliveryLocked, Outage


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outage(clock: Clock) -> Outage:
    return Outage(clock)


def fail(outage: Outage, clock: Clock, seconds: float, key: str | None = None, code: int = 2013) -> None:
    def wait_in_vain() -> None:
        with outage.asking(key):
            clock.now += seconds
            raise OperationalError(code, "away")

    with pytest.raises(OperationalError, match="away"):
        wait_in_vain()


def is_asked(outage: Outage, work: Callable[[], object] = bool) -> bool:
    try:
        with outage.asking():
            work()
    except DatabaseAway:
        return False
    return True


def test_a_failure_that_comes_at_once_holds_nobody_up(outage: Outage, clock: Clock) -> None:
    fail(outage, clock, 0.9)
    assert is_asked(outage)


def test_a_failure_that_took_long_spares_the_others_the_wait(outage: Outage, clock: Clock) -> None:
    fail(outage, clock, 1.0)
    assert outage.holds
    assert not is_asked(outage)
    clock.now += HOLD_SECONDS - 0.1
    assert not is_asked(outage)


def test_then_one_at_a_time_tries_and_its_success_lets_everybody_in(outage: Outage, clock: Clock) -> None:
    fail(outage, clock, 3.0)
    clock.now += HOLD_SECONDS
    others: list[bool] = []
    assert is_asked(outage, lambda: others.append(is_asked(outage)))
    assert others == [False]
    assert not outage.holds
    assert is_asked(outage)


def test_a_try_that_fails_at_once_holds_on(outage: Outage, clock: Clock) -> None:
    fail(outage, clock, 3.0)
    clock.now += HOLD_SECONDS
    fail(outage, clock, 0.0)
    assert not is_asked(outage)


def test_a_fault_that_is_not_the_databases_changes_nothing(outage: Outage, clock: Clock) -> None:
    def broken() -> None:
        clock.now += 5
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        is_asked(outage, broken)
    assert is_asked(outage)


def lock(outage: Outage, clock: Clock, key: str | None) -> None:
    fail(outage, clock, 2.0, key, code=1205)


def test_a_delivery_that_waits_for_its_lock_holds_up_no_other(outage: Outage, clock: Clock) -> None:
    lock(outage, clock, "one")
    assert not outage.holds
    assert is_asked(outage)
    with pytest.raises(DeliveryLocked), outage.asking("one"):
        pass
    with outage.asking("two"):
        pass
    clock.now += HOLD_SECONDS
    with outage.asking("one"):
        pass


def test_many_that_wait_for_locks_at_once_are_an_outage(outage: Outage, clock: Clock) -> None:
    """As where a table is locked. A lock of before does not count."""
    clock_at = clock.now
    for number in range(MOST_LOCKED - 1):
        clock.now = clock_at
        lock(outage, clock, f"old-{number}")
    clock.now += HOLD_SECONDS
    clock_at = clock.now
    for number in range(MOST_LOCKED):
        assert not outage.holds
        clock.now = clock_at
        lock(outage, clock, f"new-{number}")
    assert outage.holds


def test_a_lock_that_a_delivery_without_identity_waits_for_is_not_its_own(outage: Outage, clock: Clock) -> None:
    lock(outage, clock, None)
    assert outage.holds


def test_a_lost_connection_is_an_outage_whatever_the_delivery(outage: Outage, clock: Clock) -> None:
    fail(outage, clock, 2.0, "one")
    assert outage.holds


def test_a_try_that_finds_a_lock_does_not_end_the_outage(outage: Outage, clock: Clock) -> None:
    fail(outage, clock, 3.0)
    clock.now += HOLD_SECONDS
    lock(outage, clock, "one")
    assert outage.holds
