"""JSON without loss: exact slices of a text, exact numbers, strict grammar.

Python's default reader accepts NaN, turns 1e400 into infinity and long integers into an error; a connector must not guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented in json/decoder.py, absent from typeshed
from typing import Any, Final, NoReturn

MAX_DEPTH_HINT: Final = "nested too deeply"
_WHITESPACE: Final = " \t\n\r"


class NotJson(ValueError):
    """The text is not JSON: the message names what is wrong and where. Fix the sender; the bytes are kept on the receipt."""


def _refuse_constant(token: str) -> NoReturn:
    raise NotJson(f"{token} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def _scan(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise NotJson(MAX_DEPTH_HINT) from None
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error}") from None
    except NotJson:
        raise
    except ValueError as error:  # an integer of more digits than the interpreter converts
        raise NotJson(f"not readable as JSON: {error}") from None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITESPACE:
        at += 1
    return at


def parse(text: str) -> Any:
    """The value of a JSON text; integers exact, other numbers Decimal. Raises NotJson."""
    value, end = _scan(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise NotJson(f"not JSON: extra text at character {_skip(text, end)}")
    return value


def decode(body: bytes) -> str:
    """The body as text. JSON is UTF-8 (RFC 8259); a byte order mark is dropped. Raises NotJson."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8: {error.reason} at byte {error.start}") from None


def elements(text: str, at: int = 0) -> Iterator[tuple[str, Any]]:
    """Each element of the array that starts at `at`: its exact slice and its value. Raises NotJson."""
    at = _skip(text, at)
    if text[at : at + 1] != "[":
        raise NotJson("expected a JSON array")
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return
    while True:
        value, end = _scan(text, at)
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
        _, at = _scan(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found
        if text[at : at + 1] != ",":
            raise NotJson(f"not JSON: expected ',' or '}}' at character {at}")
        at = _skip(text, at + 1)
