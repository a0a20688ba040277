"""What comes after a failure: delays never overflow, and any error text can be stored."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from projection.completion.retry_policy import LONGEST_SECONDS, Again, GiveUp, after_failure, bounded_delay, delay_seconds
from projection.facts import RetryPolicy
from projection.safe_text import ERROR_TEXT_BYTES, error_text, fingerprint, message_of, storable, with_reason

DOUBLING = RetryPolicy(base=1, factor=2, cap=3600, attempts=12)
NO_JITTER = staticmethod(lambda: 0.5).__func__


def delay(policy: RetryPolicy, attempt: int) -> float:
    return delay_seconds(policy, attempt, chance=NO_JITTER)


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(1, 1), (2, 2), (12, 2048), (13, 3600), (47, 3600), (1024, 3600), (1025, 3600), (10**6, 3600)]
)
def test_the_cap_is_applied_without_computing_the_power(attempt: int, seconds: float) -> None:
    assert delay(DOUBLING, attempt) == seconds


def test_an_attempt_beyond_any_float_is_the_cap() -> None:
    assert delay(DOUBLING, 10**400) == 3600


@pytest.mark.parametrize("attempt", [1, 2, 12, 1024, 10**6])
@pytest.mark.parametrize(
    ("factor", "first", "later"),
    [pytest.param(0, 8, 1, id="0: at once after the first"), pytest.param(1, 8, 8, id="1: constant")],
)
def test_factors_that_do_not_grow(attempt: int, factor: float, first: float, later: float) -> None:
    assert delay(RetryPolicy(base=8, factor=factor), attempt) == (first if attempt == 1 else later)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 8), (2, 4), (4, 1), (1024, 1), (10**6, 1), (10**400, 1)])
def test_a_shrinking_factor_ends_at_the_floor(attempt: int, seconds: float) -> None:
    assert delay(RetryPolicy(base=8, factor=0.5), attempt) == seconds


@pytest.mark.parametrize("attempt", [1, 12, 1024, 10**6])
def test_a_cap_below_the_base_wins(attempt: int) -> None:
    assert delay(RetryPolicy(base=100, factor=3, cap=10), attempt) == 10


@pytest.mark.parametrize("attempt", [1, 646, 1024, 10**6])
def test_a_base_of_nothing_is_the_floor_for_ever(attempt: int) -> None:
    assert delay(RetryPolicy(base=0, factor=3), attempt) == 1


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 5), (47, LONGEST_SECONDS), (10**6, LONGEST_SECONDS)])
def test_without_a_cap_the_delay_still_fits_a_datetime(attempt: int, seconds: float) -> None:
    assert delay(RetryPolicy(base=5, factor=3, cap=None), attempt) == seconds


@pytest.mark.parametrize("policy", [RetryPolicy(base=1e300, factor=1e300, cap=None), RetryPolicy(base=math.inf, cap=3600)])
def test_enormous_members_end_at_the_cap(policy: RetryPolicy) -> None:
    assert delay(policy, 3) == (policy.cap or LONGEST_SECONDS)


def test_jitter_stays_inside_the_cap_and_above_the_floor() -> None:
    chance = random.Random(41)
    for attempt in (1, 2, 5, 12, 13, 1024, 10**6):
        plain = delay(DOUBLING, attempt)
        for _ in range(200):
            seconds = delay_seconds(DOUBLING, attempt, chance=chance.random)
            assert max(1, plain * 0.9) <= seconds <= min(3600, plain * 1.1)


def test_jitter_spreads() -> None:
    assert len({delay_seconds(DOUBLING, 8) for _ in range(20)}) > 1


@pytest.mark.parametrize("change", [{"base": -1.0}, {"factor": -2.0}, {"cap": -1.0}, {"base": math.nan}, {"factor": math.nan}])
def test_an_uncomputable_delay_gives_up_with_the_reason(change: dict[str, float]) -> None:
    after = after_failure(replace(DOUBLING, **change), 1, 0.0)
    assert isinstance(after, GiveUp)
    assert "is not valid: base" in after.reason


@pytest.mark.parametrize(("attempt", "again"), [(1, True), (11, True), (12, False), (13, False)])
def test_the_budget_of_attempts(attempt: int, again: bool) -> None:
    after = after_failure(DOUBLING, attempt, 0.0)
    assert isinstance(after, Again) is again
    if isinstance(after, GiveUp):
        assert after.reason == f"attempt {attempt} of 12 failed"


@pytest.mark.parametrize(("age", "again"), [(59.9, True), (60.0, False)])
def test_give_up_after_an_age(age: float, again: bool) -> None:
    after = after_failure(replace(DOUBLING, give_up_after=60), 1, age)
    assert isinstance(after, Again) is again


@pytest.mark.parametrize(
    ("requested", "seconds"),
    [(30, 30), (0, 1), (-5, 1), (1e9, 3600), (math.inf, 3600), (-math.inf, 1), (math.nan, 1)],
)
def test_a_requested_delay_is_kept_within_the_cap(requested: float, seconds: float) -> None:
    assert bounded_delay(DOUBLING, requested) == seconds


class Hostile(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


FAMILY = ValueError("bad 👨‍👩‍👧 \x00 \udc88 " + "x" * 2_000_000)


def test_the_text_of_an_emoji_nul_surrogate_and_two_megabytes() -> None:
    text = error_text(FAMILY)
    assert text.startswith("ValueError: bad 👨‍👩‍👧 \\x00 \\udc88 xxx")
    assert text.endswith("… [cut]")
    assert len(text.encode("utf-8")) <= ERROR_TEXT_BYTES


def test_an_exception_whose_text_cannot_be_read() -> None:
    assert error_text(Hostile()) == "Hostile: (its text cannot be read: RuntimeError)"
    assert message_of(Hostile()) == "(its text cannot be read: RuntimeError)"


def test_an_exception_without_text_is_its_name() -> None:
    assert error_text(KeyError()) == "KeyError"


@pytest.mark.parametrize("text", ["", "plain", "tab\tand\nline", "é🎩", "𝄞" * 2047])
def test_ordinary_text_is_stored_as_it_is(text: str) -> None:
    assert storable(text) == text


@pytest.mark.parametrize("text", ["x" * 8193, "é" * 4097, "𝄞" * 2049, "\x00" * 8192, "\udc80" * 5000, "a" + "𝄞" * 4000])
def test_long_text_is_cut_between_characters_with_a_mark(text: str) -> None:
    cut = storable(text)
    assert cut.endswith("… [cut]")
    assert 8180 < len(cut.encode("utf-8")) <= ERROR_TEXT_BYTES


def test_the_longest_text_is_kept_whole() -> None:
    assert storable("x" * ERROR_TEXT_BYTES) == "x" * ERROR_TEXT_BYTES


def test_a_reason_survives_the_cut() -> None:
    text = with_reason(error_text(FAMILY), "attempt 2 of 2 failed")
    assert text.endswith("… [cut] (attempt 2 of 2 failed)")
    assert len(text.encode("utf-8")) <= ERROR_TEXT_BYTES
    assert with_reason("ValueError: no", "attempt 2 of 2 failed") == "ValueError: no (attempt 2 of 2 failed)"


def test_failures_of_one_cause_share_a_fingerprint() -> None:
    same = {fingerprint(f"KeyError: 'id-{n}' of contact {n} at line {n}\ntrace {n}") for n in range(5)}
    assert len(same) == 1
    assert fingerprint("KeyError: no contact") not in same


@pytest.mark.parametrize("text", ["", "\n", "🎩 'unclosed", "x" * 9000])
def test_a_fingerprint_is_always_a_key(text: str) -> None:
    assert len(fingerprint(text)) == 64
