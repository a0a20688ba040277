"""Identity and time out of parsed payloads, for packs. Numbers in identity never pass a float."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from connectors.delivery import Item
from connectors.pack import Unreadable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM: Final = 10**11
"""A number of seconds this large lies in the year 5138, so it is milliseconds; as milliseconds it is 1973."""
_MICROSECONDS_FROM: Final = 10**14


def identity_text(value: Any) -> str | None:
    """An id as text, digits as they were sent; None for null and for text that is blank.

    Raises Unreadable for what cannot be an id: an object, an array, true or false (which would be one id with "true"), a float (its
    digits are lost already).
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    word = {bool: "true or false", dict: "an object", list: "an array"}.get(type(value), f"a {type(value).__name__}")
    raise Unreadable(f"an id, kind or lane must be text or a number, not {word}")


SEPARATORS: Final = ".:/"
"""Between the type of a record and what happened to it, in the kinds of providers: `order.paid`, `orders/paid`, `jira:issue_updated`."""
_SEPARATOR: Final = re.compile(f"[{re.escape(SEPARATORS)}]")


def type_of_kind(kind: str) -> str:
    """What stands before the first separator of a kind, the type of its record by default; the kind itself where there is none."""
    return _SEPARATOR.split(kind, maxsplit=1)[0] or kind


def action_of_kind(kind: str) -> str:
    """What stands behind the last separator of a kind; the kind itself where there is none."""
    return _SEPARATOR.split(kind)[-1]


def members(item: Item) -> Mapping[str, Any]:
    """The item as an object. Raises Unreadable when it is none."""
    if not isinstance(item.value, Mapping):
        raise Unreadable("the item is not a JSON object")
    return item.value


def required(found: Mapping[str, Any], *names: str) -> str:
    """The id in the first of these members that is there. Raises Unreadable naming the first one when none is."""
    for name in names:
        text = identity_text(found.get(name))
        if text is not None:
            return text
    raise Unreadable(f"{names[0]} is missing or empty")


def inside(value: Any, *path: str) -> Any:
    """The value at a path of member names; None where a step is missing or no object."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def provider_time(value: Any) -> datetime | None:
    """A provider's time stamp as aware UTC: ISO 8601 (without a zone: UTC), or Unix seconds, milliseconds or microseconds.

    None when there is none or it cannot be read: provider time is a hint and never a reason to reject (docs/protocol.md#order).
    """
    if isinstance(value, str):
        text = value.strip()
        if not (text.isascii() and text.isdigit()):
            return _from_iso(text)
        value = int(text) if len(text) <= 20 else None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return _from_number(Decimal(value))


def _from_iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment >= _EPOCH else None


def _from_number(number: Decimal) -> datetime | None:
    if not 0 <= number < 10**18:
        return None
    unit = 1_000_000
    if number >= _MICROSECONDS_FROM:
        unit = 1
    elif number >= _MILLISECONDS_FROM:
        unit = 1000
    try:
        return _EPOCH + timedelta(microseconds=int(number * unit))
    except OverflowError:
        return None
