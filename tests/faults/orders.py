"""What a test tells a child process to do, and what the child says of it: plain values that travel as JSON."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

Side = Literal["before", "after"]
SIDES: Final[tuple[Side, Side]] = ("before", "after")
KILL, STOP = int(signal.SIGKILL), int(signal.SIGSTOP)
DROP: Final = 0
"""In place of a signal: the server ends the very connection, as an operator's KILL does."""


@dataclass(frozen=True, slots=True)
class At:
    """At its `number`-th commit point (from 1) the process sends itself the signal; with `room` only those of that room count."""

    number: int
    side: Side
    signal: int = KILL
    room: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Commands that one process runs, one after the other, as `manage.py` would."""

    commands: Sequence[Sequence[str]]
    folder: str
    """Where it writes what it says (`said`) and which commit points it met (`points`)."""
    at: At | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Django settings of this process alone."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Sizes of the product (`projection.retention.prune.KEYS_A_UNIT`) made small, so that few rows make many transactions."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Order:
        at = members.pop("at")
        return cls(**members, at=At(**at) if at else None)
