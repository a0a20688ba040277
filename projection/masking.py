"""Masks of a route: the value of a masked field is shown as `•••`, every other character of the text stays as it is.

A mask is a dotted path: `$.email`, `$.contact.phone`, `$.items[*].card`, `$[*].propertyValue`. A path that ends at an object or
array hides all of it. Providers send one thing or a list of them: `[*]` may be left out, and may stand where there is no list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented in json/decoder.py, absent from typeshed
from typing import Final

from projection.exact_json import NotJson, parse

HIDDEN: Final = "•••"
EACH: Final = "[*]"
_STEP: Final = re.compile(r"\.([^.\[\]\s]+)|(\[\*\])")
_SCALAR: Final = re.compile(r"[^\s,\]}]*")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_SPACES: Final = re.compile(r"[ \t\n\r]*")

Path = tuple[str, ...]


class BadMask(ValueError):
    """A mask is no dotted path; write it like $.email, $.contact.phone or $.items[*].card."""


def path(mask: str) -> Path:
    """The steps of a mask: member names, and `[*]` for each element. Raises BadMask."""
    if not mask.startswith("$") or len(mask) == 1:
        raise BadMask(f"{mask!r} is not a valid mask; write it like $.email, $.contact.phone or $.items[*].card")
    steps: list[str] = []
    at = 1
    while at < len(mask):
        found = _STEP.match(mask, at)
        if found is None:
            raise BadMask(f"{mask!r} is not a valid mask; at character {at + 1}, write .name or [*]")
        steps.append(found.group(1) or EACH)
        at = found.end()
    return tuple(steps)


def written(steps: Path) -> str:
    """The mask that has these steps: the inverse of `path`."""
    return "$" + "".join(step if step == EACH else f".{step}" for step in steps)


def mask(text: str, masks: Iterable[str], *, anywhere: bool = False) -> str:
    """`text` with the value of each masked field replaced by `•••`, and nothing else changed.

    `anywhere` applies each path at every object inside the text too (for a receipt's body, whose items lie somewhere in it). A text
    that is not JSON cannot be searched for fields, so with masks it is hidden whole. Raises BadMask.
    """
    masks = list(masks)
    if not masks:
        return text
    try:
        found = slices(text, masks, anywhere=anywhere)
    except NotJson:
        return HIDDEN
    return "".join(_with_hidden(text, found))


def slices(text: str, masks: Iterable[str], *, anywhere: bool = False) -> list[tuple[int, int]]:
    """Start and end of each value that `mask` hides, in order. Raises BadMask, and NotJson."""
    paths = [path(one) for one in masks]
    found: list[tuple[int, int]] = []
    try:
        parse(text)
        at = _skip(text, 0)
        _collect(text, at, _fitting(text, at, paths), paths if anywhere else [], found)
    except RecursionError:
        raise NotJson("nested too deeply to search for fields") from None
    return found


def _with_hidden(text: str, slices: Iterable[tuple[int, int]]) -> Iterator[str]:
    at = 0
    for start, end in slices:
        yield text[at:start]
        yield HIDDEN
        at = end
    yield text[at:]


def _collect(text: str, at: int, paths: list[Path], everywhere: list[Path], found: list[tuple[int, int]]) -> int:
    """Add start and end of each value that a path leads to from the value at `at`; where that value ends.

    An empty path has ended here, and whoever called has hidden the value unless it is the whole text.

    Each character is read once, however deep it lies: the text may be a stranger's. A member whose name occurs twice is found
    twice: both values were sent, both may be private. The text is known to be JSON.
    """
    if text[at] not in "[{":
        return _end(text, at)
    closing, is_object = ("}", True) if text[at] == "{" else ("]", False)
    at = _skip(text, at + 1)
    while text[at] != closing:
        if is_object:
            step, at = scanstring(text, at + 1, True)
            at = _skip(text, _skip(text, at) + 1)  # the colon
            below = [one[1:] for one in paths if one[:1] == (step,)]
        else:
            below = [one[1:] if one[0] == EACH else one for one in paths if one]
        below = _fitting(text, at, below)
        if () in below:
            end = _end(text, at)
            found.append((at, end))
        elif below or everywhere:
            end = _collect(text, at, list(dict.fromkeys([*below, *_fitting(text, at, everywhere)])), everywhere, found)
        else:
            end = _end(text, at)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return at + 1


def _fitting(text: str, at: int, paths: Iterable[Path]) -> list[Path]:
    """The paths as they apply to the value at `at`: what is no list is taken for its only element."""
    if text[at] == "[":
        return list(paths)
    return [tuple(dropwhile(EACH.__eq__, one)) for one in paths]


def _end(text: str, at: int) -> int:
    """Where the value that starts at `at` ends. The text is known to be JSON."""
    if text[at] == '"':
        return int(scanstring(text, at + 1, True)[1])
    if text[at] not in "[{":
        return _match_end(_SCALAR, text, at)
    depth = 0
    for token in _BRACKETS.finditer(text, at):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.group(), 0)
        if depth == 0:
            return token.end()
    raise NotJson("a value has no end")


def _skip(text: str, at: int) -> int:
    return _match_end(_SPACES, text, at)


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
