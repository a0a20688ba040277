"""What steps have in common: how one is written down, and how it picks what it is done to (`which`, modulo how many there are)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from tests.model.values import Work
from tests.model.world import NAMESPACES, World

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Written:
    """Shown as a call that makes it, without the members that have their default."""

    def __repr__(self) -> str:
        told = [f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if getattr(self, one.name) != one.default]
        return f"{type(self).__name__}({', '.join(told)})"


def pick(candidates: Sequence[T], which: int) -> T | None:
    return candidates[which % len(candidates)] if candidates else None


def place(number: int) -> str:
    """The namespace of this number."""
    return NAMESPACES[number % len(NAMESPACES)]


def choose(world: World, which: int, *states: str) -> Work | None:
    """One of the items in these states; where there is none, any item (to be refused)."""
    return pick([work for work in world.model.works if work.state in states] or world.model.works, which)
