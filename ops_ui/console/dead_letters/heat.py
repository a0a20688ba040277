"""The heat table: deaths by error and part of a period, as cells with a shade, a link's parameters and a sentence. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

ROWS_SHOWN: Final = 10
"""Errors with the most deaths; a longer table would be read by nobody before they filter."""
SHADES: Final = 5


@dataclass(frozen=True, slots=True)
class Period:
    """`parts` columns of `width` each, the first one at `since` (aware, UTC)."""

    name: str
    since: datetime
    width: timedelta
    parts: int

    def begins(self, part: int) -> datetime:
        return self.since + part * self.width

    @property
    def title(self) -> str:
        return f"last {self.parts} {self.unit}s"

    @property
    def unit(self) -> str:
        return "hour" if self.name == HOURS else "day"


HOURS: Final = "hours"
DAYS: Final = "days"


def period(name: str, now: datetime) -> Period:
    """The last 24 hours by the hour or, for `days`, the last 14 days by the day (UTC), the current part included."""
    if name == DAYS:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return Period(DAYS, midnight - timedelta(days=13), timedelta(days=1), 14)
    hour = now.replace(minute=0, second=0, microsecond=0)
    return Period(HOURS, hour - timedelta(hours=23), timedelta(hours=1), 24)


@dataclass(frozen=True, slots=True)
class Deaths:
    """Deaths of one error in one part; `newest` is the id of the newest one."""

    fingerprint: str
    part: int
    count: int
    newest: int


@dataclass(frozen=True, slots=True)
class Cell:
    """`shade` 0 (none) to 5 (most). The query is that of the list behind it."""

    count: int
    shade: int
    begins: datetime
    ends: datetime
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One error: all of its deaths in the period."""

    fingerprint: str
    error: str
    total: int
    cells: tuple[Cell, ...]
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Heat:
    period: Period
    begins: tuple[datetime, ...]
    """Of each column."""
    rows: tuple[Row, ...]
    more_errors: int
    """Errors with fewer deaths that have no row."""
    sentence: str


def top(deaths: Sequence[Deaths]) -> dict[str, int]:
    """Fingerprint → newest death, of the errors that get a row, most deaths first."""
    totals: dict[str, int] = {}
    newest: dict[str, int] = {}
    for one in deaths:
        totals[one.fingerprint] = totals.get(one.fingerprint, 0) + one.count
        newest[one.fingerprint] = max(newest.get(one.fingerprint, 0), one.newest)
    ranked = sorted(totals, key=lambda fingerprint: (-totals[fingerprint], fingerprint))
    return {fingerprint: newest[fingerprint] for fingerprint in ranked[:ROWS_SHOWN]}


def heat(within: Period, deaths: Sequence[Deaths], errors: Mapping[str, str], kept: Mapping[str, str]) -> Heat | None:
    """The table of the errors that `errors` (fingerprint → its first line) names, in its order; None without any.

    `kept` are the parameters of the page that a cell's link keeps (route, pack).
    """
    if not deaths:
        return None
    counts = {(one.fingerprint, one.part): one.count for one in deaths}
    most = max(counts.get((fingerprint, part), 0) for fingerprint in errors for part in range(within.parts))
    rows = tuple(_row(within, fingerprint, error, counts, most, kept) for fingerprint, error in errors.items())
    others = len({one.fingerprint for one in deaths}) - len(rows)
    begins = tuple(within.begins(part) for part in range(within.parts))
    return Heat(within, begins, rows, others, _sentence(within, rows, sum(one.count for one in deaths), len(rows) + others))


def _row(  # noqa: PLR0917  # one caller
    within: Period,
    fingerprint: str,
    error: str,
    counts: Mapping[tuple[str, int], int],
    most: int,
    kept: Mapping[str, str],
) -> Row:
    query = {**kept, "fingerprint": fingerprint, "show": "all", "by": within.name}
    cells = tuple(_cell(within, part, counts.get((fingerprint, part), 0), most, query) for part in range(within.parts))
    return Row(fingerprint, error, sum(cell.count for cell in cells), cells, {**query, "since": iso(within.since)})


def _cell(within: Period, part: int, count: int, most: int, query: Mapping[str, str]) -> Cell:
    begins, ends = within.begins(part), within.begins(part + 1)
    return Cell(count, shade(count, most), begins, ends, {**query, "since": iso(begins), "until": iso(ends)})


def shade(count: int, most: int) -> int:
    """By the number's size, not its share: 1 of 1,000 is seen, and 500 of 1,000 looks different from it."""
    if count == 0:
        return 0
    return SHADES if count >= most else 1 + int((SHADES - 1) * _log(count) / max(_log(most), 1e-9))


def _log(number: int) -> float:
    return math.log1p(number)


def iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%MZ}"


def _sentence(within: Period, rows: Sequence[Row], total: int, errors: int) -> str:
    worst = max((cell for row in rows for cell in row.cells), key=lambda cell: cell.count)
    at = f"{worst.begins:%Y-%m-%d %H:%M}" if within.name == HOURS else f"{worst.begins:%Y-%m-%d}"
    return (
        f"{total:,} dead letter{'s' if total != 1 else ''} with {errors:,} different error{'s' if errors != 1 else ''} "
        f"in the {within.title}; "
        f"the most in one {within.unit}: {worst.count:,} ({at} UTC)."
    )


def parsed(rows: Sequence[tuple[Any, ...]], within: Period) -> list[Deaths]:
    """Rows of the statement; what died after `now` was read belongs to the last part."""
    last = within.parts - 1
    return [
        Deaths(str(fingerprint or ""), min(int(part), last), int(count), int(newest)) for fingerprint, part, count, newest in rows
    ]
