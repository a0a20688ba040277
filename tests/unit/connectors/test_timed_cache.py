"""Values are read again after their time, errors at once, and strangers cannot fill the memory."""

from __future__ import annotations

import pytest

from connectors.timed_cache import TimedCache


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_read_once_within_its_time_and_again_after_it() -> None:
    clock, loads = Clock(), []

    def load(key: str) -> int:
        loads.append(key)
        return len(loads)

    cache = TimedCache(load, seconds=5, clock=clock)
    assert [cache("a"), cache("a"), cache("b")] == [1, 1, 2]
    clock.now = 4.9
    assert cache("a") == 1
    clock.now = 5.0
    assert cache("a") == 3
    cache.forget()
    assert cache("a") == 4


def test_an_error_is_raised_and_never_kept() -> None:
    answers = iter([LookupError("not yet"), "there"])

    def load(_: str) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    cache = TimedCache(load)
    with pytest.raises(LookupError):
        cache("a")
    assert cache("a") == "there"


def test_the_number_of_kept_values_is_bounded() -> None:
    loads: list[int] = []

    def load(key: int) -> int:
        loads.append(key)
        return key

    cache = TimedCache(load, largest=3)
    for key in (1, 2, 3, 4):
        cache(key)
    cache(4)
    assert loads == [1, 2, 3, 4]
    cache(1)
    assert loads == [1, 2, 3, 4, 1]


def test_what_ends_is_left_out_at_its_end_whatever_the_age_of_the_cache() -> None:
    clock, loads = Clock(), []

    def load(key: str) -> tuple[float, ...]:
        loads.append(key)
        return (3.0, 9.0)

    cache = TimedCache(load, seconds=5, clock=clock, current=lambda ends: tuple(end for end in ends if end > clock.now))
    assert cache("a") == (3.0, 9.0)
    clock.now = 3.0
    assert cache("a") == (9.0,)
    assert cache.last("a") == (3.0, (9.0,))
    assert loads == ["a"]
