"""What an error of a flow or a pack quotes of masked fields, hidden before it is stored: no page, export, trace or command shows it then.

Found are the exact values, as text, as JSON and as Python write them, and what an error has of a value that it cut. What a flow makes
of a value (its upper case, its digits turned round) is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented in json/decoder.py, absent from typeshed
from typing import Final

from projection.exact_json import NotJson
from projection.masking import HIDDEN, BadMask, slices
from projection.safe_text import storable

CHARACTERS: Final = 1024 * 1024
"""Of the payloads together: reading them takes a fifth of a second."""
WORD: Final = 4
"""A shorter value is hidden where it stands alone only: a `7` is in many texts."""
ANCHOR: Final = 16
"""Characters of a value from which on a part of it, cut by whoever wrote the error, is known for it."""
_SCALAR: Final = re.compile(r'("(?:[^"\\]++|\\.)*+")([ \t\n\r]*:)?|-?[0-9][-+.0-9eE]*')
"""A string, with the colon behind it where it is a name; or a number."""
_TYPE: Final = re.compile(r"[^\W\d][\w.]*(?=: |\Z)")
UNTOLD: Final = "its text is not stored, because the fields masked by the route could not be found in it"


def without_masked(text: str, payloads: Iterable[str], masks: tuple[str, ...], *, anywhere: bool = False) -> str:
    """`text` with each value of `payloads` that `masks` hide replaced; `anywhere` as for `masking.mask`.

    Never raises: where it cannot be said what is masked, the type alone is left.
    """
    if not masks or not text:
        return text
    try:
        values = set(_values(payloads, masks, anywhere))
    except (BadMask, NotJson, OverflowError):
        name = _TYPE.match(text)
        return f"{name.group()}: {UNTOLD}" if name else UNTOLD
    for value in sorted(values, key=len, reverse=True):
        text = _without(text, value)
    return storable(text)


def _values(payloads: Iterable[str], masks: tuple[str, ...], anywhere: bool) -> Iterator[str]:
    """Each form of each masked text and number. Raises OverflowError where the payloads are too long to be looked through."""
    left = CHARACTERS
    for payload in payloads:
        left -= len(payload)
        if left < 0:
            raise OverflowError
        for start, end in slices(payload, masks, anywhere=anywhere):
            for found in _SCALAR.finditer(payload, start, end):
                if not found[2]:  # names of members tell what kind of a thing it is, and are left
                    yield from _forms(found[0])


def _forms(token: str) -> Iterator[str]:
    if not token.startswith('"'):
        yield token
        return
    decoded = str(scanstring(token, 1, True)[0])
    for form in (token[1:-1], decoded, repr(decoded)[1:-1], " ".join(decoded.split()), storable(decoded)):
        if form.strip():
            yield form


def _without(text: str, value: str) -> str:
    if len(value) < WORD:
        return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)
    anchor = value[:ANCHOR]
    parts, at = [], 0
    while (start := text.find(anchor, at)) >= 0:
        end = start + len(anchor)
        while end < len(text) and end - start < len(value) and text[end] == value[end - start]:
            end += 1
        parts += [text[at:start], HIDDEN]
        at = end
    return "".join((*parts, text[at:]))
