"""Deliveries in files: JSON Lines, each line a body, or an envelope `{"headers": {…}, "body": …}`.

A body that is a string stands for its text; any other body is kept as its exact slice of the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from connectors.delivery import Headers
from projection import exact_json
from projection.exact_json import NotJson

ENVELOPE: Final = {"headers", "body"}
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One line: what would have come over HTTP."""

    line: int
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no delivery, and why."""

    line: int
    reason: str


def deliveries(lines: Iterable[bytes]) -> Iterator[Delivery | BadLine]:
    """Each line that is not blank, numbered from 1. Raises nothing that a line can cause."""
    for number, raw in enumerate(lines, start=1):
        line = (raw.removeprefix(_BOM) if number == 1 else raw).strip(b" \t\r\n")
        if line:
            yield _delivery(number, line)


def _delivery(number: int, line: bytes) -> Delivery | BadLine:
    try:
        text = exact_json.decode(line)
        value = exact_json.parse(text)
        if isinstance(value, dict) and set(value) == ENVELOPE:
            return Delivery(number, _headers(value["headers"]), _body(text, value["body"]))
    except NotJson as error:
        return BadLine(number, f"{error} (write one delivery per line; compact a pretty-printed file first)")
    except ValueError as error:
        return BadLine(number, str(error))
    return Delivery(number, Headers({"content-type": "application/json"}), line)


def _headers(value: Any) -> Headers:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("headers must be an object whose values are text")
    return Headers(value)


def _body(text: str, value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("the body contains a lone surrogate, which cannot be sent as UTF-8") from None
    at = exact_json.member_at(text, "body")
    end = exact_json.end_of(text, at or 0)
    return text[at:end].encode("utf-8")
