"""Gates: stop a rival at a statement or at COMMIT until the test opens it; and faults of the server at any of them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.db import connections

import connectors
import projection
from projection.database.catalogue import catalogue
from tests.support.rivals import PATIENCE_SECONDS, Rival

T = TypeVar("T")
COMMIT = "COMMIT"
_VARIABLE = r"\{\w+\}|\(%s(?:, %s)*(?:,\s+%s(?:, %s)*)*\)"
"""A part that the caller fills in, or the placeholders of one row, which are sent as literals of many."""
_FOLDERS = [Path(str(part.__file__)).parent for part in (projection, connectors)]


@cache
def _texts() -> dict[str, tuple[str, ...]]:
    """Name of each statement of the catalogue → its text without its variable parts."""
    texts = {name: text for folder in _FOLDERS for name, text in catalogue(folder).items()}
    return {name: tuple(part for part in re.split(_VARIABLE, text) if part.strip()) for name, text in texts.items()}


def is_statement(name: str, sql: str) -> bool:
    """Whether a text that is sent is the named statement of the catalogue."""
    return all(part in sql for part in _texts()[name])


@contextmanager
def at_each_statement(meet: Callable[[str], object], *, after: bool = False) -> Iterator[None]:
    """`meet(sql)` is called before (or after) each statement of this thread's connection inside the block, and with "COMMIT"."""
    own = connections["default"]  # the object itself: the proxy may stand for another one when the block ends
    commit = own.commit

    def send(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if not after:
            meet(sql)
        answer = execute(sql, params, many, context)
        if after:
            meet(sql)
        return answer

    def meet_and_commit() -> None:
        meet(COMMIT)
        commit()

    own.commit = meet_and_commit
    try:
        with own.execute_wrapper(send):
            yield
    finally:
        del own.commit


class Gate:
    """Stops whoever comes first to a named statement of the catalogue (`after`: has its answer), or to COMMIT."""

    def __init__(self, name: str, *, after: bool = False) -> None:
        self._name = name
        self._after = after
        self._reached = threading.Event()
        self._opened = threading.Event()

    def through(self, work: Callable[[], T]) -> T:
        """Do the work on this thread's connection, stopping at the gate."""
        with at_each_statement(self._meet, after=self._after):
            return work()

    def _meet(self, sql: str) -> None:
        if sql == self._name if COMMIT in (sql, self._name) else is_statement(self._name, sql):
            self._reached.set()
            assert self._opened.wait(PATIENCE_SECONDS), f"the gate at {self._name} was never opened"

    def await_arrival(self) -> None:
        assert self._reached.wait(PATIENCE_SECONDS), f"nobody came to {self._name}"

    def open(self) -> None:
        self._opened.set()


@contextmanager
def stopped_at(gate: Gate, work: Callable[[], T]) -> Iterator[Rival[T]]:
    """A rival that stands at the gate inside the block, with all of its locks, and goes on when the block ends."""
    rival = Rival(lambda: gate.through(work))
    try:
        gate.await_arrival()
        yield rival
    finally:
        gate.open()
