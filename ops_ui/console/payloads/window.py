"""Which part of a long text a page shows, and what a search finds in it: functions of a text and its lines."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from ops_ui.console.payloads.json_lines import Lines

LINES: Final = 400
"""Lines of one window: more scrolls badly on a phone."""
CHARACTERS: Final = 40_000
"""Characters of one window, where lines are long."""
HITS: Final = 10_000
"""Hits that are counted; beyond these a search says "or more"."""
NEEDLE: Final = 200
"""Characters of a search."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a window shows of line `line`: `text[start:end]`."""

    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Window:
    """The lines of a page. `next` and `previous` are places in the text where the windows after and before begin; None: there is none."""

    pieces: list[Piece]
    next: int | None
    previous: int | None

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return self.pieces[-1].end


def window(lines: Lines, at: int) -> Window:
    """The window that begins at `at`, or at the last line where that is beyond the text."""
    index = lines.at(at)
    if lines.starts[index] < at >= lines.ends[index] and index + 1 < len(lines.starts):
        index += 1  # `at` is in the white space before it
    start = min(max(at, lines.starts[index]), lines.ends[index])
    left = CHARACTERS
    pieces: list[Piece] = []
    while index < len(lines.starts) and len(pieces) < LINES and left > 0:
        start = max(start, lines.starts[index])
        end = min(lines.ends[index], start + left)
        pieces.append(Piece(index, start, end))
        left -= max(end - start, 1)
        index += 1
    last = pieces[-1]
    if last.end < lines.ends[last.line]:
        following: int | None = last.end
    else:
        following = lines.starts[index] if index < len(lines.starts) else None
    return Window(pieces, following, _before(lines, pieces[0].start))


def _before(lines: Lines, begin: int) -> int | None:
    """Where the window begins that ends at `begin`."""
    index = first = lines.at(begin)
    within = begin - lines.starts[index]
    if within >= CHARACTERS:
        return begin - CHARACTERS
    if index == 0:
        return lines.starts[0] if within > 0 else None
    left, most = CHARACTERS - within, LINES - (within > 0)
    while first > 0 and index - first < most and left >= (size := _size(lines, first - 1)):
        left -= size
        first -= 1
    if first == index and within <= 0:  # the line before is longer than a window
        return lines.ends[first - 1] - CHARACTERS
    return lines.starts[first]


def _size(lines: Lines, index: int) -> int:
    return max(lines.ends[index] - lines.starts[index], 1)


def around(lines: Lines, place: int) -> int:
    """Where a window begins that shows `place` with a little of what stands before it."""
    index = lines.at(place)
    if place - lines.starts[index] > CHARACTERS // 2:
        return place - CHARACTERS // 8
    first = max(index - LINES // 8, 0)
    while lines.ends[index] - lines.starts[first] > CHARACTERS // 2 and first < index:
        first += 1
    return lines.starts[first]


def search(text: str, needle: str) -> list[int]:
    """Where `needle` stands in the text, whatever its case; at most HITS + 1 places, none within another. Linear in time."""
    needle = _folded(needle[:NEEDLE])
    if not needle:
        return []
    within = _folded(text)
    found: list[int] = []
    at = within.find(needle)
    while at >= 0 and len(found) <= HITS:
        found.append(at)
        at = within.find(needle, at + len(needle))
    return found


def _folded(text: str) -> str:
    """Lower case, a character for each character: İ alone would become two."""
    return text.replace("\u0130", "i").lower()


def hits_within(found: list[int], length: int, start: int, end: int) -> range:
    """Numbers of the hits that have a part in `text[start:end]`."""
    first = bisect_left(found, start - length + 1)
    return range(first, max(first, bisect_left(found, end)))
