"""A refused action, as a value: what was refused, a stable code, one sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """`id` is the item (a WorkId), `code` stable for programs, `reason` for people."""

    id: str
    code: str
    reason: str
