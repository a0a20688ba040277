"""How much work of a scope waits, and for how long: a look at so many rows, never at all of a large backlog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from projection.database.catalogue import fetch, statement
from projection.database.clock import from_db
from projection.states import State

LOOKED_AT: Final = 10_000
"""Waiting items of each state that are looked at."""
WAITING: Final = (State.PENDING, State.RETRY, State.BLOCKED)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose work: rows whose column has one of the values (never none)."""

    column: Literal["Namespace", "PackId", "RouteId"]
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Backlog:
    """`is_exact` False: there is more than was looked at, so these are the least. `oldest` None: nothing waits."""

    count: int
    oldest: datetime | None
    is_exact: bool


def backlog(scope: Scope) -> Backlog:
    """The work of a scope that waits to run. One statement that reads a bounded number of rows."""
    values: list[Any] = []
    for state in WAITING:
        values += [tuple(scope.values), tuple(scope.values), state.value, LOOKED_AT]
    branches = " UNION ALL ".join([statement("backlog_of_state").format(column=scope.column)] * len(WAITING))
    ((count, oldest, looked_at),) = fetch("count_backlog", values, branches=branches)
    return Backlog(int(count or 0), from_db(oldest), looked_at < LOOKED_AT)
