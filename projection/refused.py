"""A refusal: the expected outcome of an operator's action that the protocol does not allow now. A value, never an exception."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """`code` is for programs (`not_found`, `not_dead`, `already_replayed` …), `reason` a sentence for the operator."""

    id: str
    code: str
    reason: str
