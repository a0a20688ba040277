"""A piece of a line as HTML: each character literally, strings isolated from their neighbours' direction, hits of a search marked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django.utils.safestring import SafeString, mark_safe

from ops_ui.console.base.tags import literal
from ops_ui.console.payloads.json_lines import STRING

_COLON: Final = re.compile(r"[ \t\n\r]*:")
_TIGHT: Final = re.compile(r":(?![ \t\n\r])")


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that a search found: `text[start:end]`."""

    start: int
    end: int
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    name: str
    """Class of its element; empty: what is between strings."""


def json_piece(text: str, line: int, start: int, end: int, hits: Sequence[Hit]) -> SafeString:
    """`text[start:end]` of the JSON line that begins at `line`; reads the line up to `end`."""
    parts = []
    for token in _tokens(text, line, end):
        if token.end > start:
            inside = _marked(text, max(token.start, start), min(token.end, end), hits, spaced=not token.name)
            parts.append(f'<bdi class="{token.name}">{inside}</bdi>' if token.name else inside)
    return mark_safe("".join(parts))  # noqa: S308  # each part is escaped by `literal`


def plain_piece(text: str, start: int, end: int, hits: Sequence[Hit]) -> SafeString:
    """`text[start:end]` of a text of any kind."""
    return mark_safe(f"<bdi>{_marked(text, start, end, hits)}</bdi>")  # noqa: S308  # escaped by `literal`


def _tokens(text: str, start: int, end: int) -> Iterator[_Token]:
    at = start
    for found in STRING.finditer(text, start, end):
        if at < found.start():
            yield _Token(at, found.start(), "")
        yield _Token(found.start(), found.end(), "json-name" if _COLON.match(text, found.end()) else "json-text")
        at = found.end()
    if at < end:
        yield _Token(at, end, "")


def _marked(text: str, start: int, end: int, hits: Sequence[Hit], *, spaced: bool = False) -> str:
    parts: list[str] = []
    at = start
    for hit in islice(hits, bisect_right(hits, start, key=lambda hit: hit.end), None):
        first, last = max(hit.start, at), min(hit.end, end)
        if first >= last:
            break
        parts.append(_literal(text[at:first], spaced=spaced))
        own = ' id="hit"' if hit.is_current and hit.start >= start else ""
        parts.append(
            f'<mark class="hit{" hit-current" if hit.is_current else ""}"{own}>{_literal(text[first:last], spaced=spaced)}</mark>'
        )
        at = last
    parts.append(_literal(text[at:end], spaced=spaced))
    return "".join(parts)


def _literal(text: str, *, spaced: bool) -> str:
    """`spaced`: colons between tokens get their space from the style sheet, so that the text stays as it is."""
    escaped = literal(text)
    return _TIGHT.sub('<span class="json-colon">:</span>', escaped) if spaced else escaped
