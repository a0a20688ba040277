"""WorkIds as people handle them: shown short in tables, and taken by any beginning that only one work item has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from projection.models import WorkItem

SHORT_DIGITS: Final = 12
"""Of the hash of a WorkId in a table: among a billion items two share them once in some hundred thousand."""
SHORTEST_PREFIX: Final = 6
"""Characters of the hash that name an item."""
NAMED: Final = 5
"""Items that an ambiguous beginning is told by."""
_WORK_ID: Final = re.compile(r"((?:[a-z]+:)?)([0-9a-f]+)")


class Ambiguous(LookupError):
    """A beginning of several WorkIds; the message names some."""


def short(work_id: str | None) -> str:
    """`evt:6c9233caf46a` of `evt:6c9233caf46aa379…`; any other text as it is."""
    match = _WORK_ID.fullmatch(work_id or "")
    return f"{match[1]}{match[2][:SHORT_DIGITS]}" if match else work_id or ""


def full(text: str) -> str:
    """The WorkId that `text` is or begins; the text itself where no item has it. One query or two. Raises Ambiguous."""
    match = _WORK_ID.fullmatch(text)
    if match is None or len(match[2]) < SHORTEST_PREFIX or WorkItem.objects.filter(work_id=text).exists():
        return text
    found = list(
        WorkItem.objects.filter(work_id__startswith=text).order_by("work_id").values_list("work_id", flat=True)[: NAMED + 1]
    )
    if len(found) > 1:
        more = " and more" if len(found) > NAMED else ""
        raise Ambiguous(f"{text} is the beginning of {', '.join(found[:NAMED])}{more}; give more characters")
    return found[0] if found else text


def all_full(texts: Iterable[str]) -> list[str]:
    """As `full`, of each."""
    return [full(text) for text in texts]
