"""What comes after a failure: a pure function of the policy, the attempt and chance (docs/protocol.md#retry)."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from projection.facts import RetryPolicy

FLOOR_SECONDS: Final = 1.0
"""No retry comes sooner: a failing flow must not spin."""
LONGEST_SECONDS: Final = 365 * 86_400.0
"""Without a cap of its own a policy still ends here, far before a DATETIME does."""
JITTER_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Again:
    """Run again after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Dead-letter, because of `reason`."""

    reason: str


def delay_seconds(policy: RetryPolicy, attempt: int, *, chance: Callable[[], float] = random.random) -> float:
    """Seconds until the attempt after `attempt` (from 1): min(cap, base × factor^(attempt−1)), jitter inside the cap, at least 1 s.

    Never overflows: a power beyond the cap is the cap. Raises ValueError for a policy that yields no number (negative, NaN).
    """
    cap = LONGEST_SECONDS if policy.cap is None else min(policy.cap, LONGEST_SECONDS)
    if not (policy.base >= 0 and policy.factor >= 0 and cap >= 0):
        raise ValueError(f"retry policy is not valid: base {policy.base}, factor {policy.factor}, cap {policy.cap}")
    bounded = min(cap, _exponential(policy.base, float(policy.factor), max(attempt, 1) - 1))
    return max(FLOOR_SECONDS, min(cap, bounded * (1 + JITTER_SHARE * (2 * chance() - 1))))


def _exponential(base: float, factor: float, exponent: int) -> float:
    """base × factor^exponent, infinite where a float ends."""
    if base == 0:
        return 0.0  # before the power: 0 × infinity is no number
    try:
        return base * factor ** min(exponent, sys.maxsize)
    except OverflowError:
        return math.inf


def after_failure(
    policy: RetryPolicy, attempt: int, age_seconds: float, *, chance: Callable[[], float] = random.random
) -> Again | GiveUp:
    """What becomes of an item whose attempt `attempt` just failed, `age_seconds` after it was first claimed."""
    if attempt >= policy.attempts:
        return GiveUp(f"attempt {attempt} of {policy.attempts} failed")
    if policy.give_up_after is not None and age_seconds >= policy.give_up_after:
        return GiveUp(f"still failing {age_seconds:.0f} s after its first attempt (give_up_after {policy.give_up_after:.0f} s)")
    try:
        return Again(delay_seconds(policy, attempt, chance=chance))
    except ValueError as error:
        return GiveUp(str(error))


def bounded_delay(policy: RetryPolicy, requested: float) -> float:
    """A delay that a flow or a Retry-After asked for, kept within [1 s, cap]; not a number counts as 1 s."""
    cap = LONGEST_SECONDS if policy.cap is None else min(policy.cap, LONGEST_SECONDS)
    if math.isnan(requested):
        return FLOOR_SECONDS
    return max(FLOOR_SECONDS, min(cap, requested))
