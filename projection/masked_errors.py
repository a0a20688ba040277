"""What an error of a flow or a pack quotes of masked fields, hidden before it is stored: no page, export, trace or command shows it then.

Found are the exact values, as text, JSON, Python, HTML and addresses write them, and what an error has of a value that it cut. What a
flow makes of a value (its upper case, its digits turned round) is not known here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented in json/decoder.py, absent from typeshed
from typing import Final
from urllib.parse import unquote

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
CUT_MARKS: Final = ".…\"') \n"
"""What stands behind a text that was cut."""
ROUNDS: Final = 3
"""Of escapes within escapes."""
_ESCAPE: Final = re.compile(
    r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});|(?:%[0-9a-fA-F]{2})+|\\u[0-9a-fA-F]{4}|\\[/\"\\]|\+"
)
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
    spans = [span for value in values for span in _found(text, value)]
    plain, places = _decoded(text)
    if plain != text:
        spans += [(places[start][0], places[end - 1][1]) for value in values for start, end in _found(plain, value)]
    return storable("".join(_with_hidden(text, spans)))


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


def _found(text: str, value: str) -> Iterator[tuple[int, int]]:
    """Where `value` stands in a text, or a part of it: its first or last characters, or what a text that was cut still has of it."""
    if len(value) < WORD:
        yield from (found.span() for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text))
        return
    for anchor, step in ((value[:ANCHOR], 1), (value[-ANCHOR:], -1)):
        at = 0
        while (start := text.find(anchor, at)) >= 0:
            end = start + len(anchor)
            if step == 1:
                while end < len(text) and end - start < len(value) and text[end] == value[end - start]:
                    end += 1
            else:
                while start > 0 and end - start < len(value) and text[start - 1] == value[start - end - 1]:
                    start -= 1
            yield start, end
            at = end
    ends = len(text.rstrip(CUT_MARKS))
    for length in range(min(len(value), ANCHOR) - 1, WORD - 1, -1):
        if text.endswith(value[:length], 0, ends):
            yield ends - length, ends
            return


def _decoded(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without the escapes of HTML, JSON and addresses, and where each of its characters stood."""
    places = [(at, at + 1) for at in range(len(text))]
    for _ in range(ROUNDS):
        plain: list[str] = []
        moved: list[tuple[int, int]] = []
        at = 0
        for found in _ESCAPE.finditer(text):
            meant = _meant(found[0])
            plain += [text[at : found.start()], meant]
            moved += places[at : found.start()]
            moved += [(places[found.start()][0], places[found.end() - 1][1])] * len(meant)
            at = found.end()
        if not at:
            break
        text, places = "".join((*plain, text[at:])), [*moved, *places[at:]]
    return text, places


def _meant(escape: str) -> str:
    if escape.startswith("&"):
        return html.unescape(escape)
    if escape.startswith("%"):
        return unquote(escape)
    if escape.startswith("\\u"):
        return chr(int(escape[2:], 16))
    return " " if escape == "+" else escape[1:]


def _with_hidden(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    at = 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:
            yield text[at:start]
            yield HIDDEN
        at = max(at, end)
    yield text[at:]
