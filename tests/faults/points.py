"""The places where a process meets the database: every statement, and every point at which something becomes durable.

Found by wrapping Django's connections, all of them and in every thread, and not by a list: a COMMIT, or a write outside of a
transaction, which commits by itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from tests.support.running import CHECKOUT

COMMIT: Final = "COMMIT"
_WRITE: Final = re.compile(
    r"\s*(INSERT\s+(?:IGNORE\s+)?INTO|UPDATE|DELETE\s+FROM|REPLACE\s+INTO)\s+`?(?:_System_Connector)?(\w+)", re.IGNORECASE
)
_HARMLESS: Final = re.compile(
    r"\s*\(*\s*(?:SELECT|WITH|SHOW|SET|SAVEPOINT|RELEASE|ROLLBACK|BEGIN|START|EXPLAIN|KILL)\b", re.IGNORECASE
)
"""Statements that make nothing durable."""
_PRODUCT: Final = ("connectors", "projection", "ops_ui")
_CARRIERS: Final = ("catalogue.py", "models.py")
"""What writes for whoever calls it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process stands: at a statement, or at COMMIT."""

    connection: BaseDatabaseWrapper
    text: str
    """The statement, or `COMMIT`."""
    durable: str | None
    """What becomes durable here, and by which unit (or function): `admit: INSERT Event, UPDATE Namespace`; None: nothing does."""

    @property
    def is_commit(self) -> bool:
        return self.text == COMMIT

    @property
    def is_in_transaction(self) -> bool:
        return self.connection.in_atomic_block


Meet = Callable[[Place], object]


def nothing(_: Place) -> None:
    """Goes on."""


@contextmanager
def watched(before: Meet, after: Meet = nothing) -> Iterator[None]:
    """`before(place)` is called at each place before it reaches the server, `after(place)` once it was done or refused.

    Both in the thread that is there.
    """
    base: Any = BaseDatabaseWrapper
    cursor: Any = CursorWrapper
    commit, rollback, send = base._commit, base.rollback, cursor._execute_with_wrappers

    def commit_watched(self: BaseDatabaseWrapper) -> Any:
        place = Place(self, COMMIT, f"{room()}: {', '.join(sorted(_written(self))) or 'nothing'}")
        _written(self).clear()
        before(place)
        try:
            return commit(self)
        finally:
            after(place)

    def rollback_watched(self: BaseDatabaseWrapper) -> Any:
        _written(self).clear()
        return rollback(self)

    def send_watched(self: Any, sql: str, params: Any, many: bool, executor: Any) -> Any:
        place = Place(self.db, sql, _durable(self.db, sql))
        before(place)
        try:
            return send(self, sql, params, many, executor)
        finally:
            after(place)

    base._commit, base.rollback, cursor._execute_with_wrappers = commit_watched, rollback_watched, send_watched
    try:
        yield
    finally:
        base._commit, base.rollback, cursor._execute_with_wrappers = commit, rollback, send


def _written(connection: BaseDatabaseWrapper) -> set[str]:
    """What the connection's open transaction has written so far. It ends with its socket."""
    if connection.connection is None:
        return set()
    found: set[str] = connection.connection.__dict__.setdefault("written", set())
    return found


def _durable(connection: BaseDatabaseWrapper, sql: str) -> str | None:
    """What a statement makes durable by itself. Inside a transaction nothing; its COMMIT will say what it wrote."""
    if _HARMLESS.match(sql):
        return None
    found = _WRITE.match(sql)
    name = f"{found[1].split()[0].upper()} {found[2]}" if found else sql.split(None, 1)[0].upper()
    if not connection.in_atomic_block and connection.get_autocommit():
        return f"{room()}: {name}"
    _written(connection).add(name)
    return None


def room() -> str:
    """The verb of the unit that this thread is in; outside of units the function of the product that writes."""
    frame = sys._getframe(1)
    own: str | None = None
    while frame is not None and frame.f_back is not None:
        path = Path(frame.f_code.co_filename)
        if frame.f_code.co_name == "run_unit":
            return str(frame.f_locals["verb"])
        if own is None and _is_of_the_product(path) and path.name not in _CARRIERS:
            own = f"{path.stem}.{frame.f_code.co_name}"
        frame = frame.f_back
    return own or "?"


def _is_of_the_product(path: Path) -> bool:
    return path.is_relative_to(CHECKOUT) and path.relative_to(CHECKOUT).parts[0] in _PRODUCT
