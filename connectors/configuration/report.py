"""What applying a configuration file did, or would do: values for commands, the console and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["connection", "pack", "endpoint", "route"]
Outcome = Literal["created", "changed", "unchanged", "removed"]


@dataclass(frozen=True, slots=True)
class Step:
    """What became (or would become) of one part of the file; `changes` are lines `name: old → new`, secrets without values."""

    kind: Kind
    name: str
    outcome: Outcome
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extra:
    """Something the namespace has and the file does not name."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Report:
    """Outcome of applying a file (`dry_run`: nothing was kept)."""

    namespace: str
    dry_run: bool
    steps: tuple[Step, ...]
    warnings: tuple[str, ...]
    extras: tuple[Extra, ...]

    def of(self, outcome: Outcome) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.outcome == outcome)

    @property
    def changes_something(self) -> bool:
        return any(step.outcome != "unchanged" for step in self.steps)

    @property
    def is_drift(self) -> bool:
        """The database is not what the file says: applying would change it, or it has more than the file names."""
        return self.changes_something or bool(self.extras)
