"""The flow of the last hour or day in equal parts: received, admitted, executed, failed. Without time-zone functions of the server.

Each part is counted to a cap, so that a page costs the same whatever flows. A part with more rows is estimated from how dense they lie
at its beginning and at its end, the thinner of both counting for what is between: a burst is rather told too small than too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from ops_ui.console.lists.charts import Bars, bars
from projection.database.catalogue import Sender
from projection.database.clock import from_db, to_db
from projection.inspection import lane_reads
from projection.models import WorkItem
from projection.states import ReceiptState, State

ROWS_A_PART: Final = 2_000
"""Index entries of one part and state: with 60 parts some 100 ms for the busiest series."""
RECEIPTS_A_PART: Final = 100
"""Receipts whose rows are read for how many events they had: enough for an average, and all of them where it is quiet."""
LATEST_CLOCK: Final = timedelta(minutes=5)
"""So far ahead of the database's clock another one may be: its rows count as now."""

BLOCKED_LOOKED_AT: Final = 2_000
"""Blocked items of the lowest ids that are looked through for the lanes they wait in."""
_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class _Reads:
    """The statements that count a part from its beginning and, where there is one, from its end."""

    from_beginning: str
    from_end: str = ""


_RECEIPTS: Final = _Reads("read_part_of_receipts", "read_part_of_receipts_from_its_end")
_UNROUTED: Final = _Reads("read_part_of_unrouted_receipts")
_ENDS: Final = _Reads("read_part_of_ends", "read_part_of_ends_from_its_end")
_FAILURES: Final = _Reads("read_part_of_failures", "read_part_of_failures_from_its_end")


@dataclass(frozen=True, slots=True)
class Window:
    """A period up to now in `parts` of `width`; `title` says it after "in the", `part` after "one"."""

    name: str
    title: str
    part: str
    parts: int
    width: timedelta


HOUR: Final = Window("hour", "last hour", "minute", 60, timedelta(minutes=1))
DAY: Final = Window("day", "last 24 hours", "half hour", 48, timedelta(minutes=30))
WINDOWS: Final = {window.name: window for window in (HOUR, DAY)}


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a window, oldest part first."""

    title: str
    kind: str
    chart: Bars
    is_estimated: bool
    window: Window

    @property
    def sentence(self) -> str:
        """The chart in words."""
        if not self.chart.total:
            return f"{self.title}: none in the {self.window.title}."
        about = "about " if self.is_estimated else ""
        most = f"at most {about}{self.chart.peak:,} in one {self.window.part}"
        return f"{self.title}: {about}{self.chart.total:,} in the {self.window.title}, {most}."


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one part, and whether that is an estimate."""

    rows: int
    is_estimated: bool = False

    def __add__(self, other: _Part) -> _Part:
        return _Part(self.rows + other.rows, self.is_estimated or other.is_estimated)


_Span = tuple[datetime, datetime]


def flow(window: Window, now: datetime) -> list[Series]:
    """The four series. Some ten statements (ix_receipt_state, ix_work_terminal, ix_failure_created)."""
    spans = _spans(window, now)
    routed = _states(_RECEIPTS, [ReceiptState.ROUTED, ReceiptState.PARTIAL], spans)
    rest = _counted(_UNROUTED, spans)
    executed = _states(_ENDS, [State.PROCESSED, State.SKIPPED], spans)
    failed = _counted(_FAILURES, spans)
    received = [one + other for one, other in zip(routed, rest, strict=True)]
    return [
        _series("Received", "received", received, window),
        _series("Admitted", "admitted", _admitted(spans, routed), window),
        _series("Executed", "executed", executed, window),
        _series("Failed attempts", "failed", failed, window),
    ]


def begins(window: Window, now: datetime) -> list[datetime]:
    """When each part begins."""
    return [begin for begin, _ in _spans(window, now)]


def _spans(window: Window, now: datetime) -> list[_Span]:
    """Beginning and end of each part; the last one takes in what a clock ahead has written."""
    since = now - window.parts * window.width
    spans = [(since + place * window.width, since + (place + 1) * window.width) for place in range(window.parts)]
    return [*spans[:-1], (spans[-1][0], spans[-1][1] + LATEST_CLOCK)]


def _states(reads: _Reads, states: Sequence[str], spans: Sequence[_Span]) -> list[_Part]:
    """The parts of several states together."""
    counted = [_counted(reads, spans, (str(state),)) for state in states]
    return [sum(parts, _Part(0)) for parts in zip(*counted, strict=True)]


def _counted(reads: _Reads, spans: Sequence[_Span], which: tuple[str, ...] = ()) -> list[_Part]:
    """The rows of each part. One statement, and one more where there are more of them than are counted."""
    asked = [(place, *which, to_db(begin), to_db(end), ROWS_A_PART) for place, (begin, end) in enumerate(spans)]
    found = {place: (rows, last) for place, rows, last in _sql.fetch_each(reads.from_beginning, asked)}
    full = [one for one in asked if reads.from_end and found[one[0]][0] >= ROWS_A_PART]
    first = {place: at for place, _, at in _sql.fetch_each(reads.from_end, full)}
    made = []
    for place, span in enumerate(spans):
        rows, last = found[place]
        if place in first:
            made.append(_Part(estimate(rows, span, from_db(last), from_db(first[place])), is_estimated=True))
        else:
            made.append(_Part(rows, is_estimated=rows >= ROWS_A_PART))
    return made


def estimate(rows: int, span: _Span, last: datetime, first: datetime) -> int:
    """Rows of a part: `rows` of them end at `last`, read from its beginning, and as many begin at `first`, read from its end."""
    between = (first - last).total_seconds()
    if between <= 0:
        return 2 * rows if first == last else rows  # they overlap: nearly all of them were read
    densities = rows / max((last - span[0]).total_seconds(), 0.000_001), rows / max((span[1] - first).total_seconds(), 0.000_001)
    return round(2 * rows + between * min(densities))


def _admitted(spans: Sequence[_Span], routed: Sequence[_Part]) -> list[_Part]:
    """Events of the deliveries of each part: counted, or the average of some of them times their number."""
    asked = [(place, to_db(begin), to_db(end), RECEIPTS_A_PART) for place, (begin, end) in enumerate(spans)]
    made = [_Part(0)] * len(spans)
    for place, receipts, events in _sql.fetch_each("read_part_of_events", asked):
        if receipts < RECEIPTS_A_PART:
            made[place] = _Part(int(events or 0))
        else:
            made[place] = _Part(round(int(events) * max(routed[place].rows, receipts) / receipts), is_estimated=True)
    return made


def _series(title: str, kind: str, parts: Sequence[_Part], window: Window) -> Series:
    return Series(title, kind, bars([part.rows for part in parts]), any(part.is_estimated for part in parts), window)


@dataclass(frozen=True, slots=True)
class BlockedLane:
    """`since`: when its item that has waited for longest was made; `items`: how many of those looked at wait there."""

    key: str
    name: str
    since: datetime
    items: int


def longest_blocked(limit: int) -> list[BlockedLane]:
    """The lanes whose items were made first, of those that are blocked now. Three statements (ix_work_terminal)."""
    found = _sql.fetch("read_longest_blocked", looked_at=BLOCKED_LOOKED_AT, limit=limit)
    if not found:
        return []
    items = {item.id: item for item in WorkItem.objects.filter(id__in=[row[1] for row in found])}
    names = lane_reads.lane_names(list(items.values()))
    return [BlockedLane(key, names[item], items[item].created_date, count) for key, item, count in found if item in items]
