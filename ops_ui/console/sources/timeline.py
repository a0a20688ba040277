"""Geometry of a source's time line: events as dots, work as bars over its inputs, attempts, replays. Pure functions.

Time runs from left to right in percent. The longest waits are shortened, at most GAPS of them, so that a burst of seconds and the
silence of days fit into one picture; each is marked with its true length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ops_ui.console.sources.reads import Generation, History
from projection.models import Event
from projection.states import NONTERMINAL

GAPS: Final = 6
LONGEST_SHARE: Final = 0.2
"""Of the width, for one wait; longer ones are shortened."""
EVENTS_Y: Final = 26
FIRST_TRACK_Y: Final = 58
TRACK_HEIGHT: Final = 22
TRACKS: Final = 12
"""Bars beside one another that are drawn; the table has all."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A wait that is drawn shorter than it was; at this percentage."""

    x: float
    length: timedelta


class Axis:
    """Where moments lie between 0 and 100."""

    def __init__(self, moments: Iterable[datetime]) -> None:
        self.moments: Sequence[datetime] = sorted(set(moments))
        waits = [(after - before).total_seconds() for before, after in zip(self.moments, self.moments[1:], strict=False)]
        longest = _longest(waits)
        shown = [min(wait, longest) for wait in waits]
        whole = sum(shown) or 1.0
        self._places = [0.0]
        for wait in shown:
            self._places.append(self._places[-1] + 100 * wait / whole)
        self.gaps = [
            Gap(round((self._places[place] + self._places[place + 1]) / 2, 2), timedelta(seconds=wait))
            for place, wait in enumerate(waits)
            if wait > longest
        ]

    def at(self, moment: datetime) -> float:
        """The percentage of one of the moments; a single moment stands in the middle."""
        if len(self.moments) == 1:
            return 50.0
        return round(self._places[max(bisect_right(self.moments, moment) - 1, 0)], 2)


def _longest(waits: Sequence[float]) -> float:
    """The length to which longer waits are shortened: as few as make no wait longer than its share, or as make the longest shortest."""
    if not waits:
        return 0.0
    ordered = sorted(waits, reverse=True)
    best, smallest = ordered[0], 1.1
    for cap in ordered[: GAPS + 1]:
        share = cap / sum(min(wait, cap) for wait in waits)
        if share < smallest - 0.005:
            best, smallest = cap, share
        if share <= LONGEST_SHARE:
            break
    return best


@dataclass(frozen=True, slots=True)
class Dot:
    """An event."""

    event: Event
    x: float
    kind: str
    """`event`, `replay` or `unrouted`."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A work item: its inputs from `x1` to `x2`, its wait to `claimed`, its run to `ended` (None: not yet); failures as marks."""

    generation: Generation
    y: int
    x1: float
    x2: float
    claimed: float | None
    ended: float
    marks: tuple[float, ...]

    @property
    def is_live(self) -> bool:
        return self.generation.item.state in NONTERMINAL


@dataclass(frozen=True, slots=True)
class Timeline:
    """A picture of `height` pixels."""

    first: datetime
    last: datetime
    dots: list[Dot]
    bars: list[Bar]
    gaps: list[Gap]
    height: int
    is_cut: bool
    """More bars lie beside one another than are drawn."""

    @property
    def sentence(self) -> str:
        """The picture in words."""
        states: dict[str, int] = {}
        for bar in self.bars:
            states[bar.generation.item.state] = states.get(bar.generation.item.state, 0) + 1
        failed = sum(len(bar.marks) for bar in self.bars)
        work = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "no work"
        attempts = f", {failed} failed attempt{'s' if failed != 1 else ''}" if failed else ""
        return f"{len(self.dots)} event{'s' if len(self.dots) != 1 else ''}; {work}{attempts}."


def timeline(history: History, now: datetime) -> Timeline | None:
    """The picture of a history; None of an empty one."""
    spans = {one.item.id: _moments(one, now) for one in history.generations}
    moments = [event.created_date for event in history.events]
    moments += [moment for span in spans.values() for moment in span]
    moments += [failure.created_date for one in history.generations for failure in one.failures]
    if not moments:
        return None
    axis = Axis(moments)
    bars, is_cut = _bars(history.generations, spans, axis)
    tracks = max(((bar.y - FIRST_TRACK_Y) // TRACK_HEIGHT + 1 for bar in bars), default=0)
    dots = [Dot(event, axis.at(event.created_date), _kind(event)) for event in history.events]
    return Timeline(axis.moments[0], axis.moments[-1], dots, bars, axis.gaps, FIRST_TRACK_Y + tracks * TRACK_HEIGHT, is_cut)


def _kind(event: Event) -> str:
    if event.replay_of_event_id is not None:
        return "replay"
    return "event" if event.route_id is not None else "unrouted"


def _moments(one: Generation, now: datetime) -> tuple[datetime, ...]:
    """First input, last input, first claim (if there was one), end (or now)."""
    item = one.item
    begins = one.inputs[0].created_date if one.inputs else item.created_date
    selected = one.inputs[-1].created_date if one.inputs else item.created_date
    claimed = item.first_claimed_at or item.claimed_at
    end = item.terminal_at or now
    return (begins, selected, *([claimed] if claimed else []), max(end, selected))


def _bars(generations: Sequence[Generation], spans: dict[int, tuple[datetime, ...]], axis: Axis) -> tuple[list[Bar], bool]:
    """Each bar in the first track that is free there, oldest first."""
    free: list[float] = []
    bars: list[Bar] = []
    is_cut = False
    for one in sorted(generations, key=lambda generation: (spans[generation.item.id][0], generation.item.id)):
        span = spans[one.item.id]
        x1, x2, ended = axis.at(span[0]), axis.at(span[1]), axis.at(span[-1])
        track = next((place for place, until in enumerate(free) if until < x1 - 0.8), len(free))
        if track >= TRACKS:
            is_cut = True
            continue
        free[track : track + 1] = [ended]
        claimed = axis.at(span[2]) if len(span) > 3 else None
        marks = tuple(axis.at(failure.created_date) for failure in one.failures)
        bars.append(Bar(one, FIRST_TRACK_Y + track * TRACK_HEIGHT, x1, x2, claimed, ended, marks))
    return bars, is_cut
