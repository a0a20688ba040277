"""Durations and rates as configuration writes them: `250ms`, `5s`, `2m`, `1h`, `1d`, `100/10s`. One strict reader, one writer.

And deadlines as people write them: a duration from now, or a time with its zone.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

_MILLISECONDS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)", re.ASCII)
_RATE: Final = re.compile(r"([0-9]{1,9})/(.+)", re.ASCII)
LONGEST_SECONDS: Final = 366 * 86_400.0
"""A year: longer ones are typing errors, and far below what a DATETIME can hold."""


def seconds(text: str) -> float:
    """Seconds of a duration such as `5s`; `0s` is 0. Raises ValueError naming what is allowed: no sign, fraction or blank."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a valid duration; write a whole number and ms, s, m, h or d, e.g. 5s or 250ms")
    value = int(match[1]) * _MILLISECONDS[match[2]] / 1000
    if value > LONGEST_SECONDS:
        raise ValueError(f"{text!r} is too long; the maximum is a year (366d)")
    return value


def readable(value: float) -> str:
    """The shortest exact text of `value` seconds: 90.0 → `90s`, 120.0 → `2m`, 0.25 → `250ms`. Inverse of `seconds`."""
    milliseconds = round(value * 1000)
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _MILLISECONDS[unit] == 0:
            return f"{milliseconds // _MILLISECONDS[unit]}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"


def rate(text: str) -> tuple[int, float]:
    """(starts, seconds) of a rate such as `100/10s`, or `5/s` for `5/1s`. Raises ValueError naming what is allowed."""
    match = _RATE.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{text!r} is not a valid rate; write a number, a slash and a duration, e.g. 100/10s")
    period = seconds(f"1{match[2]}" if match[2] in _MILLISECONDS else match[2])
    if period == 0:
        raise ValueError(f"{text!r} has a period of 0; write e.g. 100/10s")
    return int(match[1]), period


def readable_rate(count: int, period: float) -> str:
    """The text of a rate: (100, 10.0) → `100/10s`. Inverse of `rate`."""
    return f"{count}/{readable(period)}"


def deadline(text: str, now: datetime) -> datetime:
    """`2h` from `now`, or an ISO time with its zone, aware UTC; it may be over. Raises ValueError with a sentence."""
    with suppress(ValueError):  # no duration: then it is a time
        return now + timedelta(seconds=seconds(text))
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("not a valid time; write a duration such as 2h, or a time such as 2026-11-30T08:00:00Z") from None
    raise ValueError(f"the time zone is missing; write e.g. {text}Z")
