"""What this process knows about the database: after it kept a request waiting in vain, the next ones do not wait for it as well.

Only failures that took long count. One that comes at once (a refused connection) costs nobody anything and is simply tried again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from django.db import Error, OperationalError

from connectors.delivery import Outcome

INGRESS: Final = "ingress"
"""Alias of the connection that gives up before a provider does (`ops_ui.config.database_url.bounded`)."""
SLOW_SECONDS: Final = 1.0
HOLD_SECONDS: Final = 3.0
"""How long nobody asks after a failure that took long; then one request at a time tries again."""


DATABASE_UNAVAILABLE: Final = Outcome(
    "database_unavailable", 503, message="The delivery was not stored; please send it again.", retry_after=10
)


class DatabaseAway(OperationalError):
    """The database did not answer in time a moment ago; it is asked again in a few seconds."""


class _Asking:
    """A class and no generator: it is entered for each delivery."""

    def __init__(self, outage: Outage) -> None:
        self._outage = outage

    def __enter__(self) -> None:
        self._started = self._outage.begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._outage.answered()
        elif isinstance(error, Error):
            self._outage.failed(self._started)


class Outage:
    """Shared by the threads of a process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held_until: float | None = None

    def asking(self) -> _Asking:
        """Around one exchange with the database, a context manager. Raises DatabaseAway at its begin while nobody should ask."""
        return _Asking(self)

    def begin(self) -> float:
        """The time at which somebody asks. Raises DatabaseAway."""
        started = self._clock()
        with self._lock:
            if self._held_until is not None:
                if started < self._held_until:
                    raise DatabaseAway(f"the database did not answer in time; it is asked again within {HOLD_SECONDS:g} s")
                self._held_until = started + HOLD_SECONDS  # ours is the try; the others go on without
        return started

    def failed(self, started: float) -> None:
        with self._lock:
            if self._held_until is not None or self._clock() - started >= SLOW_SECONDS:
                self._held_until = self._clock() + HOLD_SECONDS

    def answered(self) -> None:
        with self._lock:
            self._held_until = None

    @property
    def holds(self) -> bool:
        """Whether the database would not be asked now."""
        with self._lock:
            return self._held_until is not None and self._clock() < self._held_until

    def forget(self) -> None:
        """As in a new process (tests)."""
        with self._lock:
            self._held_until = None


outage: Final = Outage()
