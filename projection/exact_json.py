"""JSON without loss: exact slices of a text, exact numbers, strict grammar.

Python's default reader accepts NaN, turns 1e400 into infinity and long integers into an error; a connector must not guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal, DecimalException
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented in json/decoder.py, absent from typeshed
from json.encoder import encode_basestring
from typing import Any, Final, NoReturn, Self

TOO_DEEP: Final = "nested too deeply"
MOST_DEPTH: Final = 200
"""Levels of arrays and objects of an item. Interpreters read 990 levels and more, each version another number, and what is read must be
written again, at two calls a level: this is well under what every later step can do."""
_WHITESPACE: Final = " \t\n\r"


class NotJson(ValueError):
    """The text is not JSON: the message names what is wrong and where. Fix the sender; the bytes are kept on the receipt."""


class TooDeep(NotJson):
    """A value that this interpreter cannot read because it is nested too deeply."""


class NoExactJson(NotJson):
    """A value has no exact JSON form: the message says which and what to use in its place."""


def _refuse_constant(token: str) -> NoReturn:
    raise NotJson(f"{token} is not JSON")


class ExactNumber(Decimal):
    """A number with a fraction or exponent: a Decimal that is written as it was received (`1E2`, `1.10`)."""

    __slots__ = ("literal",)
    literal: str

    def __new__(cls, literal: str) -> Self:
        try:
            number = super().__new__(cls, literal)
        except DecimalException:  # an exponent of more than 18 digits
            raise NotJson(f"a number of {len(literal)} characters is too large") from None
        number.literal = literal
        return number

    def __str__(self) -> str:
        return self.literal

    def __format__(self, spec: str, context: Context | None = None, /) -> str:
        return super().__format__(spec, context) if spec else self.literal

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.literal,)


LONGEST_INTEGER: Final = 4300
"""Digits that the interpreter converts; a longer integer stays an ExactNumber."""


def _any_integer(literal: str) -> int | ExactNumber:
    return int(literal) if len(literal) <= LONGEST_INTEGER and literal != "-0" else ExactNumber(literal)


_MINUS_ZERO: Final = re.compile(r"(?:^|[\[:,\s])-0(?![0-9.eE])")
"""Where an integer would lose its sign; a string that reads alike costs a second reading alone."""


_DECODER: Final = json.JSONDecoder(parse_float=ExactNumber, parse_constant=_refuse_constant)
_PATIENT_DECODER: Final = json.JSONDecoder(parse_float=ExactNumber, parse_int=_any_integer, parse_constant=_refuse_constant)
"""Slower, for the rare text with -0, or with an integer beyond LONGEST_INTEGER, which must not make its siblings unreadable."""


def _scan(text: str, at: int) -> tuple[Any, int]:
    try:
        return _decoded(text, at)
    except RecursionError:
        raise TooDeep(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error}") from None


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (json.JSONDecodeError, NotJson):
        raise
    except ValueError:  # an integer of more digits than the interpreter converts
        return _PATIENT_DECODER.raw_decode(text, at)
    if text.find("-0", at, end) >= 0 and _MINUS_ZERO.search(text[at:end]):
        return _PATIENT_DECODER.raw_decode(text, at)
    return value, end


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITESPACE:
        at += 1
    return at


def parse(text: str) -> Any:
    """The value of a JSON text; integers exact, other numbers ExactNumber (a Decimal). Raises NotJson."""
    value, end = _scan(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise NotJson(f"not JSON: extra text at character {_skip(text, end)}")
    return value


def parse_unless_deep(text: str) -> Any:
    """As `parse`; None for a text that this interpreter cannot read because it is nested too deeply, which `is_too_deep`."""
    try:
        return parse(text)
    except TooDeep:
        return None


def decode(body: bytes) -> str:
    """The body as text. JSON is UTF-8 (RFC 8259); a byte order mark is dropped. Raises NotJson."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8: {error.reason} at byte {error.start}") from None


def elements(text: str, at: int = 0) -> Iterator[tuple[str, Any]]:
    """Each element of the array that starts at `at`: its exact slice and its value, None for one that `is_too_deep`. Raises NotJson."""
    at = _skip(text, at)
    if text[at : at + 1] != "[":
        raise NotJson("expected a JSON array")
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return
    while True:
        try:
            value, end = _scan(text, at)
        except TooDeep:
            value, end = None, _end_of_deep(text, at)
        yield text[at:end], value
        at = _skip(text, end)
        if text[at : at + 1] == "]":
            return
        if text[at : at + 1] != ",":
            raise NotJson(f"not JSON: expected ',' or ']' at character {at}")
        at = _skip(text, at + 1)


def member_at(text: str, name: str, at: int = 0) -> int | None:
    """Where the value of member `name` of the object at `at` starts; the last one wins, as in a parsed object; None = absent."""
    at = _skip(text, at)
    if text[at : at + 1] != "{":
        raise NotJson("expected a JSON object")
    found: int | None = None
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return None
    while True:
        if text[at : at + 1] != '"':
            raise NotJson(f"not JSON: expected a member name at character {at}")
        try:
            key, at = scanstring(text, at + 1, True)
        except json.JSONDecodeError as error:
            raise NotJson(f"not JSON: {error}") from None
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise NotJson(f"not JSON: expected ':' at character {at}")
        at = _skip(text, at + 1)
        if key == name:
            found = at
        at = end_of(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found
        if text[at : at + 1] != ",":
            raise NotJson(f"not JSON: expected ',' or '}}' at character {at}")
        at = _skip(text, at + 1)


def element_at(text: str, index: int, at: int = 0) -> int | None:
    """Where element `index` (0 = the first) of the array at `at` starts; None = it has fewer. Raises NotJson."""
    at = _skip(text, at)
    if text[at : at + 1] != "[":
        raise NotJson("expected a JSON array")
    at = _skip(text, at + 1)
    while text[at : at + 1] not in ("]", ""):
        if index == 0:
            return at
        at = end_of(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        index -= 1
    return None


def value_at(text: str, path: tuple[str | int, ...]) -> int | None:
    """Where the value at `path` (member names and element numbers) starts; None = absent. Raises NotJson."""
    at: int | None = _skip(text, 0)
    for step in path:
        if at is None:
            return None
        at = member_at(text, step, at) if isinstance(step, str) else element_at(text, step, at)
    return at


def end_of(text: str, at: int) -> int:
    """Where the value that starts at `at` ends, however deep it is nested. Raises NotJson."""
    try:
        return _scan(text, at)[1]
    except TooDeep:
        return _end_of_deep(text, at)


_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
_BRACKETS_ALONE: Final = {ord("{"): "[", ord("}"): "]"}


def is_too_deep(text: str) -> bool:
    """Whether a JSON text has more than MOST_DEPTH levels. Costs next to nothing for a text of few arrays and objects."""
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return False
    brackets = re.sub(r"[^\[\]{}]+", "", _STRING.sub("", text)).translate(_BRACKETS_ALONE)
    for _ in range(MOST_DEPTH):
        brackets = brackets.replace("[]", "")  # one level
        if not brackets:
            return False
    return True


def _end_of_deep(text: str, at: int) -> int:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, at):
        depth += _STEPS.get(token.group(), 0)
        if depth == 0:
            return token.end()
    raise NotJson("not JSON: a value has no end")


_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def dump(value: Any) -> str:
    """JSON text of a value, without loss: what `parse` gave keeps its digits as sent, `parse(dump(value)) == value`.

    Takes None, bool, int, Decimal, str, mappings with text keys, lists and tuples. A lone surrogate is written as an escape, so
    that the text can always be stored as UTF-8. Raises NoExactJson for NaN, Infinity, a float, anything else, and endless nesting.
    """
    try:
        return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", "".join(_pieces(value)))
    except RecursionError:
        raise NoExactJson(TOO_DEEP) from None


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _object(value)
    elif isinstance(value, list | tuple):
        yield "["
        for place, element in enumerate(value):
            yield "," if place else ""
            yield from _pieces(element)
        yield "]"
    else:
        yield _scalar(value)


def _object(value: Mapping[Any, Any]) -> Iterator[str]:
    yield "{"
    for place, (name, member) in enumerate(value.items()):
        if not isinstance(name, str):
            raise NoExactJson(f"a JSON member name is text, not {type(name).__name__}")
        yield f"{',' if place else ''}{encode_basestring(name)}:"
        yield from _pieces(member)
    yield "}"


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return str(encode_basestring(value))
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        raise NoExactJson(f"{value!r} is a float and not exact (NaN and Infinity are not JSON); use a Decimal or text")
    raise NoExactJson(f"{type(value).__name__} cannot be written as JSON; use text, a number or None")


def _number(value: Decimal) -> str:
    if not value.is_finite():
        raise NoExactJson(f"{value} is not JSON; use a number, text or None")
    return str(value)  # of an ExactNumber: as it was received


def _integer(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError as error:  # more digits than the interpreter converts
        raise NoExactJson(f"the integer cannot be written as JSON: {error}") from None
