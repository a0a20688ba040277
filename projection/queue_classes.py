"""Queue classes: the shares of a claimed batch, and how every class with due work is found at a cost that no backlog changes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from projection.states import State

WEIGHTS: Final = {"interactive": 4, "default": 2, "bulk": 1}
"""Shares of a batch by queue class; an unknown class counts as `default`. What one class leaves unused the others get."""
CLAIMABLE: Final = (State.PENDING, State.RETRY)

_EARLIEST: Final = (
    "(SELECT State, QueueClass, RunAfter, UTC_TIMESTAMP(6) FROM `_System_ConnectorWorkItem` "
    "WHERE State = %s AND {condition} ORDER BY QueueClass, RunAfter, Id LIMIT 1)"
)


def weight(queue_class: str) -> int:
    """Share of a class."""
    return WEIGHTS.get(queue_class, WEIGHTS["default"])


def earliest_of_each(known: Iterable[str]) -> tuple[str, list[str]]:
    """The branches of `read_due_classes` with their values: one for each state and known class, and one for all between any two.

    So a class that nobody knew is noticed by the first of its rows; several of them one after another.
    """
    branches, values = [], []
    for state in CLAIMABLE:
        for condition, bounds in _every_class(sorted(set(known))):
            branches.append(_EARLIEST.format(condition=condition))
            values += [state.value, *bounds]
    return " UNION ALL ".join(branches), values


def _every_class(names: list[str]) -> list[tuple[str, list[str]]]:
    """Conditions on QueueClass that together are true of every class; each is one range of the index."""
    each: list[tuple[str, list[str]]] = [("QueueClass = %s", [name]) for name in names]
    between: list[tuple[str, list[str]]] = [("QueueClass > %s AND QueueClass < %s", list(bounds)) for bounds in pairwise(names)]
    return [("QueueClass < %s", names[:1]), *each, *between, ("QueueClass > %s", names[-1:])]
