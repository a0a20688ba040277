"""The items of a lane as a strip of cells in their order: a pure function of the items at its front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projection.models import WorkItem
from projection.states import State

WORDS: Final = {
    "processing": "running",
    "retry": "retrying",
    "settling": "settling",
    "due": "due",
    "blocked": "blocked by earlier work",
    "queued": "waiting for the active generation",
}
"""What each kind of cell means."""
SIGNS: Final = {"processing": "▶", "retry": "↻", "settling": "…", "due": "●", "blocked": "■", "queued": "»"}
"""Each colour has a sign of its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One item; `kind` is a key of WORDS."""

    item: WorkItem
    kind: str
    is_head: bool

    @property
    def word(self) -> str:
        return WORDS[self.kind]

    @property
    def sign(self) -> str:
        return SIGNS[self.kind]


@dataclass(frozen=True, slots=True)
class Strip:
    """The cells, head first, and how many there are of each kind among them."""

    cells: list[Cell]

    @property
    def legend(self) -> list[tuple[str, str, str, int]]:
        """(kind, sign, word, number), in the order in which they first come."""
        kinds = list(dict.fromkeys(cell.kind for cell in self.cells))
        return [(kind, SIGNS[kind], WORDS[kind], sum(cell.kind == kind for cell in self.cells)) for kind in kinds]


def head_of(items: Sequence[WorkItem]) -> WorkItem | None:
    """Who is in front: the holder of the lane, else its first item that is not blocked."""
    holder = next((item for item in items if item.lane_holder_key), None)
    return holder or next((item for item in items if item.state != State.BLOCKED), None)


def strip(items: Sequence[WorkItem], now: datetime) -> Strip:
    """The strip of the live items at the front of a lane, given in lane order."""
    head = head_of(items)
    first = [head] if head is not None else []
    return Strip([Cell(item, _kind(item, now), item is head) for item in [*first, *(one for one in items if one is not head)]])


def _kind(item: WorkItem, now: datetime) -> str:
    if item.state == State.PENDING:
        return "settling" if item.run_after > now else "due"
    if item.state == State.BLOCKED:
        return "queued" if item.projection_key is not None and item.projection_active_key is None else "blocked"
    return str(item.state)
