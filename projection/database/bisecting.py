"""Bisecting: what fails as one unit is tried again in halves, so that what is at fault is found and fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from projection.database.outages import is_outage
from projection.database.transactions import is_server_conflict, run_unit

Part = TypeVar("Part")
Result = TypeVar("Result")


def run_bisecting(
    verb: str,
    parts: Sequence[Part],
    unit: Callable[[Sequence[Part]], Result],
    at_fault: Callable[[Part, Exception], object],
    *,
    of_all: tuple[type[Exception], ...] = (),
) -> list[Result]:
    """What `unit` comes to for all parts, in their order and in as few transactions as they allow: one when nothing is wrong.

    `at_fault` is told of each part whose own transaction fails, and why; nothing of it was written. Raises a lost connection, a conflict
    that does not end, and errors `of_all`: no part is at fault then, and what was done before stays done.
    """
    if not parts:
        return []
    try:
        return [run_unit(verb, partial(unit, parts))]
    except Exception as error:
        if is_outage(error) or is_server_conflict(error) or isinstance(error, of_all):
            raise
        if len(parts) == 1:
            at_fault(parts[0], error)
            return []
    half = len(parts) // 2
    return [done for some in (parts[:half], parts[half:]) for done in run_bisecting(verb, some, unit, at_fault, of_all=of_all)]
