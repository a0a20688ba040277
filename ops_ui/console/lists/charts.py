"""Geometry of the charts: pure functions from numbers to SVG coordinates. Colours and widths are classes of the stylesheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

BAR_STEP: Final = 6
BAR_WIDTH: Final = 4.5
BAR_HEIGHT: Final = 56


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    height: float
    value: int


@dataclass(frozen=True, slots=True)
class Bars:
    """One bar for each value, in a box of `width` × `height`; a value of 0 has no height."""

    bars: tuple[Bar, ...]
    width: float
    height: float
    peak: int
    total: int
    bar_width: float = BAR_WIDTH


def bars(values: Sequence[int]) -> Bars:
    """Bars scaled to the largest value; a value above 0 is at least 1.5 high, so that it is seen beside a burst."""
    peak = max(values, default=0)
    made = []
    for place, value in enumerate(values):
        height = max(1.5, BAR_HEIGHT * value / peak) if value else 0.0
        made.append(Bar(place * BAR_STEP, round(BAR_HEIGHT - height, 2), round(height, 2), value))
    return Bars(tuple(made), max(len(values) * BAR_STEP, 1), BAR_HEIGHT, peak, sum(values))


@dataclass(frozen=True, slots=True)
class Dot:
    percent: float
    selected: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """Dots of a generation's inputs, each at a percentage of the way from its first to its last event."""

    dots: tuple[Dot, ...]
    first: datetime
    last: datetime


def timeline(moments: Sequence[tuple[datetime, bool]]) -> Timeline | None:
    """A dot for each (time, is it the selected event); None without any. Equal times stand in the middle."""
    if not moments:
        return None
    first, last = min(at for at, _ in moments), max(at for at, _ in moments)
    length = (last - first).total_seconds()
    dots = tuple(
        Dot(round(100 * ((at - first).total_seconds() / length if length else 0.5), 2), selected) for at, selected in moments
    )
    return Timeline(dots, first, last)


AGE_AXIS: Final = ((1, "1 s"), (60, "1 min"), (3_600, "1 h"), (86_400, "1 d"), (30 * 86_400, "30 d"))
"""Marks of the axis of ages, in seconds. It is logarithmic: a second and a day are both to be seen."""


@dataclass(frozen=True, slots=True)
class Mark:
    percent: float
    text: str


def age_share(seconds: float) -> float:
    """Length of an age's bar as a percentage: 0 for none, 100 for 30 days and more."""
    return round(min(100.0, 100 * math.log1p(max(seconds, 0.0)) / math.log1p(AGE_AXIS[-1][0])), 1)


def age_marks() -> tuple[Mark, ...]:
    """The marks of the axis, each where an age of that length ends."""
    return tuple(Mark(age_share(seconds), text) for seconds, text in AGE_AXIS)
