"""What is refused: an action, as a value with a stable code and one sentence; and rows that break the protocol, by an exception."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """`id` is the item (a WorkId), `code` stable for programs, `reason` for people."""

    id: str
    code: str
    reason: str


class Ambiguous(RuntimeError):
    """A projection has more than one active or more than one queued generation; run `audit` and repair the rows it names."""
