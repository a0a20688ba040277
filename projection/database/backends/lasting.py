"""A connection that outlasts what happens to it: what the server dropped, and what leads to the wrong server, is opened again.

For processes that live for weeks and keep their connections. Django itself looks at a connection only between two HTTP requests; here
that is done wherever a connection is used after a pause, in loops, threads and commands too. Never inside a transaction.
"""

from __future__ import annotations

import threading
from time import monotonic
from types import TracebackType
from typing import Any, Final
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property

from projection.database.outages import READ_ONLY_CODES

IDLE_SECONDS: Final = 1.5
"""After so long without use the server is asked (by a ping) whether it still knows the connection. Less than the shortest idle limit that
makes sense (2 s), and more than the pause of a loop that polls each second, which pays nothing."""

_lock: Final = threading.Lock()
_made: Final[WeakSet[Any]] = WeakSet()
"""Every connection of this process, of all of its threads."""


def replace_all() -> None:
    """Each connection of this process is opened again at its next use outside of a transaction.

    One of them leads to a server that takes no writes. When the address leads to another server by now, the others, which may only
    read and so would never know, must not stay behind.
    """
    now = monotonic()
    with _lock:
        for one in _made:
            one.close_at = now


class LastingMixin(BaseDatabaseWrapper):
    """Goes in front of a DatabaseWrapper."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._used_at = monotonic()
        with _lock:
            _made.add(self)

    def close_if_health_check_failed(self) -> None:
        """Django calls it before each cursor and each change of autocommit."""
        before, self._used_at = self._used_at, monotonic()
        if self.connection is not None and self.autocommit and not self.in_atomic_block:
            if self.close_at is not None and self._used_at >= self.close_at:
                self.close()
            elif self._used_at - before >= IDLE_SECONDS:
                self.health_check_done = False
        super().close_if_health_check_failed()

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _Noticing(self)


class _Noticing(DatabaseErrorWrapper):
    """Meets every error of the driver, at statements, commits and connects alike."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and error.args and error.args[0] in READ_ONLY_CODES:
            replace_all()
        super().__exit__(kind, error, trace)
