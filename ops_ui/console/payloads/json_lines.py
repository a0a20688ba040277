"""A text as lines, each a slice of it: as it was sent, or, for JSON, laid out.

Laying out cuts the text between tokens and indents; it writes nothing anew. So numbers keep their digits, duplicate keys stay, and a
place in the text is the same place in both.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

STRING: Final = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+"?', re.DOTALL)
"""A JSON string, or the rest of the text where it has no end: always matches at a quote, in linear time."""
_TOKEN: Final = re.compile(STRING.pattern + r"|[\[\]{},]|[ \t\n\r]++", re.DOTALL)
_SPACES: Final = " \t\n\r"


@dataclass(slots=True)
class Lines:
    """Lines of one text, by index: `text[starts[n]:ends[n]]`, indented `depths[n]` levels. Between two lines there is white space only."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    depths: array[int] = field(default_factory=lambda: array("q"))
    folds: dict[int, int] = field(default_factory=dict)
    """Line that opens an object or array → the line that closes it."""

    def at(self, place: int) -> int:
        """The line that holds the character at `place`; white space between two lines belongs to the one before it."""
        return max(bisect_right(self.starts, place) - 1, 0)

    def add(self, start: int, end: int, depth: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.depths.append(depth)


def as_sent(text: str) -> Lines:
    """The lines between line feeds; an empty text has one."""
    lines = Lines()
    at = 0
    for found in re.finditer("\n", text):
        lines.add(at, found.start(), 0)
        at = found.end()
    lines.add(at, len(text), 0)
    return lines


def laid_out(text: str) -> Lines:
    """A line for each member and element. Meant for JSON, with or without masked values; of other text it makes some lines or other."""
    lines = Lines()
    openers: list[int] = []
    start = end = -1
    after_opener = False
    for begin, stop, kind in _tokens(text):
        closes = kind in ("]", "}") and bool(openers)
        if closes and not after_opener and start >= 0:
            lines.add(start, end, len(openers))
            start = -1
        elif after_opener and not closes:
            lines.add(start, end, len(openers) - 1)
            start = -1
        if closes:
            opener = openers.pop()
            if not after_opener:
                lines.folds[opener] = len(lines.starts)
        start, end = begin if start < 0 else start, stop
        after_opener = kind in ("[", "{")
        if after_opener:
            openers.append(len(lines.starts))
        elif kind == ",":
            lines.add(start, end, len(openers))
            start = -1
    if start >= 0:
        lines.add(start, end, len(openers) - after_opener)
    if not lines.starts:
        lines.add(0, 0, 0)
    return lines


def _tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, first character) of each token; what is neither string nor bracket, comma or white space is one token, without it."""
    at = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if at < start:
            yield at, start, ""
        if text[start] not in _SPACES:
            yield start, end, text[start]
        at = end
    if at < len(text):
        yield at, len(text), ""
