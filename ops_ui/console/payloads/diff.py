"""What differs between two texts, line by line: a function of their lines, bounded in size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from ops_ui.console.payloads import json_lines
from ops_ui.console.payloads.reads import Text
from ops_ui.console.payloads.view import INDENTED_AT_MOST

LINES: Final = 2_000
"""Lines of each side that are compared: what finding the longest common part of more would take, no page should."""
CONTEXT: Final = 3
"""Equal lines that are shown around a difference."""
SAME, GONE, NEW, LEFT_OUT = "same", "gone", "new", "left-out"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of one side or of both, or, for LEFT_OUT, how many equal ones are not shown. Numbers begin with 1; None: not on that side."""

    kind: str
    text: str = ""
    old: int | None = None
    new: int | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows to show, lines gone and new in all, and whether a side was longer than is compared."""

    rows: list[Row]
    gone: int
    new: int
    is_cut: bool


def lines_of(one: Text) -> list[str]:
    """The lines of a text: laid out where it is JSON, without the comma after a member, so that a new one changes no other line."""
    text = one.text
    if not one.is_json():
        return text.split("\n")
    lines = json_lines.laid_out(text)
    return [
        "  " * min(depth, INDENTED_AT_MOST) + text[start:end].rstrip(" \t\n\r").removesuffix(",").rstrip(" \t\n\r")
        for start, end, depth in zip(lines.starts, lines.ends, lines.depths, strict=True)
    ]


def compare(old: Sequence[str], new: Sequence[str]) -> Difference:
    """From `old` to `new`; of each the first LINES."""
    is_cut = len(old) > LINES or len(new) > LINES
    old, new = old[:LINES], new[:LINES]
    rows: list[Row] = []
    steps = SequenceMatcher(None, old, new).get_opcodes()
    for number, (kind, old_from, old_to, new_from, new_to) in enumerate(steps):
        if kind == "equal":
            rows += _equal(old, old_from, old_to, new_from, is_first=number == 0, is_last=number == len(steps) - 1)
        else:
            rows += [Row(GONE, old[n], old=n + 1) for n in range(old_from, old_to)]
            rows += [Row(NEW, new[n], new=n + 1) for n in range(new_from, new_to)]
    return Difference(rows, sum(row.kind == GONE for row in rows), sum(row.kind == NEW for row in rows), is_cut)


def _equal(old: Sequence[str], start: int, end: int, new_start: int, *, is_first: bool, is_last: bool) -> Iterator[Row]:
    head = 0 if is_first else CONTEXT
    tail = 0 if is_last else CONTEXT
    left_out = end - start - head - tail
    for n in range(start, end):
        if left_out > 1 and n == start + head:
            yield Row(LEFT_OUT, left_out=left_out)
        if left_out <= 1 or n < start + head or n >= end - tail:
            yield Row(SAME, old[n], old=n + 1, new=n + 1 - start + new_start)
