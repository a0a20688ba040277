"""Queue classes: the shares of a claimed batch, and how every class with due work is found at a cost that no backlog changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from projection.database.catalogue import fetch, statement
from projection.states import State

WEIGHTS: Final = {"interactive": 4, "default": 2, "bulk": 1}
"""Shares of a batch by queue class; an unknown class counts as `default`. What one class leaves unused the others get."""
CLAIMABLE: Final = (State.PENDING, State.RETRY)

ASIDE: Final = "~"
"""`bulk~42`: work of class `bulk` that was set aside because its route, 42, was blocked. No configured class has this sign."""
LONGEST_BASE: Final = 12
"""Characters of the class that are kept; with the sign and any route id they fit the column. Every class with a weight is shorter."""
MOST_ASIDE: Final = 64
"""Classes of routes that there may be at once: each costs the claim four steps in an index. Work beyond them stays in its class."""
APART: Final = "!"
"""`bulk!`: work of class `bulk` over which a worker was lost. It is claimed apart: one item a claim, by a worker that runs nothing else.
No configured class has this sign either. `bulk!~42`: such work, set aside."""


def base(queue_class: str) -> str:
    """The class that work had before it was set aside, or apart."""
    return queue_class.partition(ASIDE)[0].removesuffix(APART)


def aside(queue_class: str, route_id: int) -> str:
    """The class of a route's work that is set aside."""
    return f"{prefix(queue_class)}{route_id}"


def prefix(queue_class: str) -> str:
    """What the class of set-aside work begins with, before its route's id."""
    return f"{base(queue_class)[:LONGEST_BASE]}{APART if is_apart(queue_class) else ''}{ASIDE}"


def is_aside(queue_class: str) -> bool:
    return ASIDE in queue_class


def is_apart(queue_class: str) -> bool:
    return APART in queue_class


def comes_and_goes(queue_class: str) -> bool:
    """Whether no route names it: it is a class only while there is work in it."""
    return is_aside(queue_class) or is_apart(queue_class)


def route_of(queue_class: str) -> int:
    """The route of a class of set-aside work."""
    return int(queue_class.partition(ASIDE)[2])


def weight(queue_class: str) -> int:
    """Share of a class."""
    return WEIGHTS.get(queue_class, WEIGHTS["default"])


def shares(ready: Sequence[tuple[State, str]], limit: int) -> dict[tuple[State, str], int]:
    """How many of `limit` each (state, class) with due work may have at first. Set-aside work shares what its class has."""
    parts = Counter((state, base(name)) for state, name in ready)
    total = sum(weight(name) for _, name in parts)
    return {(state, name): -(-limit * weight(base(name)) // (total * parts[state, base(name)])) for state, name in ready}


def read_due(known: Iterable[str]) -> list[tuple[str, str, datetime, datetime]]:
    """(state, queue class, earliest RunAfter, database time), naive; of classes that are not `known` the first between any two.

    So a class that nobody knew is noticed by the first of its rows; several of them one after another. One statement.
    """
    branches, values = earliest_of_each(known)
    return fetch("read_due_classes", values, branches=branches)


def earliest_of_each(known: Iterable[str]) -> tuple[str, list[str]]:
    """The branches of `read_due_classes` and their values: each class that is known once in each state, and what lies between any two."""
    branches, values, earliest = [], [], statement("earliest_of_class")
    for state in CLAIMABLE:
        for condition, bounds in _every_class(sorted(set(known))):
            branches.append(earliest.format(condition=condition))
            values += [state.value, *bounds]
    return " UNION ALL ".join(branches), values


def _every_class(names: list[str]) -> list[tuple[str, list[str]]]:
    """Conditions on QueueClass that together are true of every class; each is one range of the index."""
    each: list[tuple[str, list[str]]] = [("QueueClass = %s", [name]) for name in names]
    between: list[tuple[str, list[str]]] = [("QueueClass > %s AND QueueClass < %s", list(bounds)) for bounds in pairwise(names)]
    return [("QueueClass < %s", names[:1]), *each, *between, ("QueueClass > %s", names[-1:])]
