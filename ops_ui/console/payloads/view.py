"""What a page shows of a stored text: a window of lines, laid out or as sent, with the hits of a search. All of it is in the URL.

`as` (`sent` or `laid`) · `find` (a search) · `hit` (its number, from 1) · `at` (a place in the shown text) · `part` (a place in a text so
long that a page reads a part of it only, and the number of the line there: `40000-12`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Final

from django.http import QueryDict
from django.utils.safestring import SafeString

from ops_ui.console.payloads import json_lines
from ops_ui.console.payloads.json_lines import Lines
from ops_ui.console.payloads.marks import Hit, json_piece, plain_piece
from ops_ui.console.payloads.reads import MASKED_AT_MOST, Stored, Text
from ops_ui.console.payloads.window import CHARACTERS, HITS, NEEDLE, Window, around, hits_within, search, window

LAID_OUT_AT_MOST: Final = 1024 * 1024
"""Length up to which JSON is laid out: beyond it some hundred thousand lines would be made for a page of a few hundred."""
INDENTED_AT_MOST: Final = 24
"""Levels that are indented; what lies deeper stands below the last one."""
OWN: Final = ("find", "hit", "at", "part")
"""Parameters that say where in the text a page is; a form with a new search leaves them out."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a window. `fold`: the number of the line that closes what it opens, 0 for none; `goes_on`: it has begun before."""

    number: int
    indent: str
    html: SafeString
    fold: int = 0
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A search: how many hits, which one is shown (0: none), and where the next and the one before are."""

    needle: str
    count: int
    is_capped: bool
    hit: int = 0
    next: str = ""
    previous: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Another window: the parameter that names it, and a link to it."""

    name: str
    value: int | str
    link: str


@dataclass(frozen=True, slots=True)
class View:
    """A window of a text for `console/payloads/payload.html`. Links are query strings."""

    size: int
    unit: str
    lines: list[Line] = field(default_factory=list)
    masked: bool = False
    foreign: bool = False
    is_json: bool = False
    is_laid_out: bool = False
    too_long: bool = False
    """Its route masks fields, and it is too long to be masked for a page."""
    is_part: bool = False
    found: Found | None = None
    next: Place | None = None
    previous: Place | None = None
    as_sent: str = ""
    as_laid: str = ""
    clear: str = ""
    kept: tuple[tuple[str, str], ...] = ()
    """Parameters that a form of a new search keeps."""

    @property
    def of_lines(self) -> str:
        first, last = self.lines[0].number, self.lines[-1].number
        return f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"


def view(stored: Stored, parameters: QueryDict) -> View:
    """What `parameters` ask for; damaged ones are as good as none. At most three queries. Of a long text no more is read than is shown,
    unless it is searched."""
    length = stored.length()
    links = _Links(parameters)
    if stored.masks and length > MASKED_AT_MOST:
        return View(length, stored.unit, masked=True, too_long=True)
    if length > LAID_OUT_AT_MOST and not stored.masks and not links.needle and links.number("at") is None:
        return _part(stored, length, links)
    return replace(of_text(stored.masked(), parameters), size=length, unit=stored.unit)


def of_text(one: Text, parameters: QueryDict) -> View:
    """A window of a text that is in memory."""
    links = _Links(parameters)
    is_json = len(one.text) <= LAID_OUT_AT_MOST and one.is_json()
    laid = is_json and links.get("as") != "sent"
    lines = json_lines.laid_out(one.text) if laid else json_lines.as_sent(one.text)
    places = search(one.text, links.needle)
    hit = min(links.number("hit") or (1 if links.number("at") is None else 0), len(places), HITS)
    at = around(lines, places[hit - 1]) if hit else links.number("at") or 0
    shown = window(lines, at)
    return View(
        size=len(one.text),
        unit="characters",
        lines=_lines(one.text, lines, shown, _Hits(places, len(links.needle), hit), is_json=is_json),
        masked=one.is_masked,
        foreign=one.is_foreign,
        is_json=is_json,
        is_laid_out=laid,
        found=_found(places, hit, links, shown),
        next=links.place("at", shown.next),
        previous=links.place("at", shown.previous),
        as_sent=links.to(**{"as": "sent"}, hit=hit or None, at=None if hit else at or None),
        as_laid=links.to(**{"as": None}, hit=hit or None, at=None if hit else at or None),
        clear=links.to(find=None, at=shown.start or None),
        kept=links.kept,
    )


def _part(stored: Stored, length: int, links: _Links) -> View:
    """A window of a text of which only that is read: as it was sent, and without a count of its lines."""
    given, line = links.part()
    at = min(given, max(length - 1, 0))
    part = stored.part(at, CHARACTERS)
    lines = json_lines.as_sent(part.text)
    pieces = zip(lines.starts, lines.ends, strict=True)
    following = f"{part.end}-{line + len(lines.starts) - 1}" if part.end < length else None
    return View(
        length,
        stored.unit,
        [Line(line + n, "", plain_piece(part.text, start, end, ())) for n, (start, end) in enumerate(pieces)],
        is_part=True,
        next=links.place("part", following),
        previous=links.place("part", f"{part.before}-{max(line - part.feeds_before, 1)}" if at else None),
        kept=links.kept,
    )


class _Links:
    """The parameters of a page, and links to other places of its text."""

    def __init__(self, parameters: QueryDict) -> None:
        self._all = parameters
        self.needle = parameters.get("find", "")[:NEEDLE]
        self.kept = tuple((name, str(value)) for name, value in parameters.items() if name not in OWN)

    def get(self, name: str) -> str:
        return self._all.get(name, "")

    def number(self, name: str) -> int | None:
        """A parameter that is a number of at most 12 digits; None: it is not there, or damaged."""
        given = self.get(name)
        return int(given) if given.isascii() and given.isdecimal() and len(given) <= 12 else None

    def part(self) -> tuple[int, int]:
        """Where a part begins, and the number of its first line: the link that leads to it has counted."""
        at, _, line = self.get("part").partition("-")
        if not all(one.isascii() and one.isdecimal() and len(one) <= 12 for one in (at, line)):
            return 0, 1
        return int(at), int(line)

    def place(self, name: str, at: int | str | None) -> Place | None:
        return None if at is None else Place(name, at, self.to(**{name: at}))

    def to(self, **places: int | str | None) -> str:
        """The query string of this page at another place of its text: `places` are parameters, None takes one away."""
        parameters = self._all.copy()
        for name in ("hit", "at", "part"):
            parameters.pop(name, None)
        for name, value in places.items():
            parameters.pop(name, None)
            if value is not None:
                parameters[name] = str(value)
        return f"?{parameters.urlencode()}"


@dataclass(frozen=True, slots=True)
class _Hits:
    """Where the hits of a search begin, how long they are, and the number of the current one."""

    places: list[int]
    length: int
    current: int

    def within(self, start: int, end: int) -> list[Hit]:
        numbers = hits_within(self.places, self.length, start, end)
        return [Hit(self.places[n], self.places[n] + self.length, n + 1 == self.current) for n in numbers]


def _lines(text: str, lines: Lines, shown: Window, hits: _Hits, *, is_json: bool) -> list[Line]:
    made = []
    for piece in shown.pieces:
        start = lines.starts[piece.line]
        own = hits.within(piece.start, piece.end)
        html = json_piece(text, start, piece.start, piece.end, own) if is_json else plain_piece(text, piece.start, piece.end, own)
        fold = lines.folds.get(piece.line, -1) + 1
        indent = "  " * min(lines.depths[piece.line], INDENTED_AT_MOST)
        made.append(Line(piece.line + 1, indent, html, fold, goes_on=piece.start > start))
    return made


def _found(places: list[int], hit: int, links: _Links, shown: Window) -> Found | None:
    """`hit` 0: none is current, and the next one is the first that begins after the window."""
    if not links.needle:
        return None
    count = min(len(places), HITS)
    following = hit + 1 if hit else bisect_left(places, shown.end) + 1
    before = hit - 1 if hit else bisect_left(places, shown.start)
    return Found(
        links.needle,
        count,
        len(places) > HITS,
        hit,
        next=links.to(hit=following) if 0 < following <= count else "",
        previous=links.to(hit=before) if 0 < before <= count else "",
    )
