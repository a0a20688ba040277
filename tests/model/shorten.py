"""Make a failing history short: leave out steps, then parts of steps, then put every member back to its default.

Hypothesis shortens what it drew, without knowing where a step begins and that it stays the same step elsewhere: in five minutes it left
dozens of steps of histories of which six were needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from tests.model.steps import Step

Fails = Callable[[list[Step]], bool]


def shorten(steps: Sequence[Step], fails: Fails) -> list[Step]:
    """A history that still fails and of which no single part can be left out."""
    found = list(steps)
    size = max(1, len(found) // 2)
    while True:
        found, shorter = _leave_out(found, size, fails)
        if size > 1:
            size //= 2
        elif not shorter:
            found, simpler = _simplify(found, fails)
            if not simpler:
                return found


def _leave_out(steps: list[Step], size: int, fails: Fails) -> tuple[list[Step], bool]:
    """Every stretch of `size` steps that is not needed is left out, from the end."""
    before = len(steps)
    for start in range(len(steps) - size, -1, -size):
        without = steps[:start] + steps[start + size :]
        if fails(without):
            steps = without
    return steps, len(steps) < before


def _simplify(steps: list[Step], fails: Fails) -> tuple[list[Step], bool]:
    changed = False
    for place in range(len(steps)):
        for simpler in list(_simpler(steps[place])):
            other = [*steps[:place], simpler, *steps[place + 1 :]]
            if fails(other):
                steps, changed = other, True
                break
    return steps, changed


def _simpler(step: Any) -> Iterator[Any]:
    """The step with one member simpler: a tuple shorter or one of its members simpler, anything else its default."""
    for one in fields(step):
        value = getattr(step, one.name)
        if isinstance(value, tuple):
            for place, part in enumerate(value):
                if len(value) > 1:
                    yield replace(step, **{one.name: value[:place] + value[place + 1 :]})
                for simpler in _simpler(part) if is_dataclass(part) else ():
                    yield replace(step, **{one.name: (*value[:place], simpler, *value[place + 1 :])})
        elif one.default is not MISSING and value != one.default:
            yield replace(step, **{one.name: one.default})
