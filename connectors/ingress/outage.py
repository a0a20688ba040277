"""What this process knows about the database: after it kept a request waiting in vain, the next ones do not wait for it as well.

Only failures that took long count. One that comes at once (a refused connection) costs nobody anything and is simply tried again.
A lock that one delivery waits for is no outage: the same delivery alone is not tried for a while. Locks that several different ones
wait for are (a locked table).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Final

from django.db import Error, OperationalError

from connectors.delivery import Outcome
from projection.database.transactions import error_code

INGRESS: Final = "ingress"
"""Alias of the connection that gives up before a provider does (`ops_ui.config.database_url.bounded`)."""
SLOW_SECONDS: Final = 1.0
HOLD_SECONDS: Final = 3.0
"""How long nobody asks after a failure that took long; then one request at a time tries again."""
LOCK_WAIT_CODE: Final = 1205
"""The server answers, and says that another connection holds a row or a table."""
MOST_LOCKED: Final = 3
"""So many different deliveries that wait for locks at the same time do not wait for rows of their own."""


DATABASE_UNAVAILABLE: Final = Outcome(
    "database_unavailable", 503, message="The delivery was not stored; please send it again.", retry_after=10
)


class DatabaseAway(OperationalError):
    """The database did not answer in time a moment ago; it is asked again in a few seconds."""


class DeliveryLocked(OperationalError):
    """Another connection held this delivery's row for too long a moment ago; it alone is tried again in a few seconds."""


class _Asking:
    """A class and no generator: it is entered for each delivery."""

    def __init__(self, outage: Outage, key: Hashable | None) -> None:
        self._outage, self._key = outage, key

    def __enter__(self) -> None:
        self._started = self._outage.begin(self._key)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._outage.answered()
        elif isinstance(error, Error):
            self._outage.failed(self._started, self._key if error_code(error) == LOCK_WAIT_CODE else None)


class Outage:
    """Shared by the threads of a process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held_until: float | None = None
        self._locked: dict[Hashable, float] = {}
        """Keys that were found locked → until when they are not tried."""

    def asking(self, key: Hashable | None = None) -> _Asking:
        """Around one exchange with the database, a context manager. `key`: the one row that it may have to wait for, if there is one.

        Raises DatabaseAway at its begin while nobody should ask, DeliveryLocked while nobody should ask for this key.
        """
        return _Asking(self, key)

    def begin(self, key: Hashable | None = None) -> float:
        """The time at which somebody asks. Raises DatabaseAway or DeliveryLocked."""
        started = self._clock()
        with self._lock:
            if self._locked and started < self._locked.get(key, 0.0):
                raise DeliveryLocked(f"another connection holds this delivery's row; it is tried again within {HOLD_SECONDS:g} s")
            if self._held_until is not None:
                if started < self._held_until:
                    raise DatabaseAway(f"the database did not answer in time; it is asked again within {HOLD_SECONDS:g} s")
                self._held_until = started + HOLD_SECONDS  # ours is the try; the others go on without
        return started

    def failed(self, started: float, locked: Hashable | None = None) -> None:
        """`locked`: the key whose lock did not come in time; None: it was another failure, or there is no such key."""
        now = self._clock()
        with self._lock:
            if self._held_until is None and (now - started < SLOW_SECONDS or self._is_of_one(locked, now)):
                return
            self._held_until = now + HOLD_SECONDS

    def _is_of_one(self, locked: Hashable | None, now: float) -> bool:
        """Whether the lock concerns one key, which is left alone from now on, and not too many of them at once."""
        if locked is None:
            return False
        self._locked = {key: until for key, until in self._locked.items() if now < until} | {locked: now + HOLD_SECONDS}
        return len(self._locked) < MOST_LOCKED

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
            self._locked = {}


outage: Final = Outage()
