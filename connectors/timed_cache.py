"""Values read from the database and kept for a stated time, per process. What ends at a stated moment is kept with its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

KEPT_SECONDS: Final = 5.0
"""The age that the protocol allows (docs/protocol.md#receive): a changed secret, URL or setting counts everywhere after 5 s."""


LARGEST: Final = 4096
"""Values kept at once, the one loaded longest ago leaves first: keys may come from strangers (an endpoint's URL)."""


class TimedCache(Generic[K, V]):
    """`cache(key)` is `load(key)`, at most `seconds` old. Threads may load the same key twice; an error of `load` is never kept.

    `current` makes of a kept value what it is at the moment of the call, e.g. without a secret that has ended since.
    """

    def __init__(
        self,
        load: Callable[[K], V],
        *,
        seconds: float = KEPT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        largest: int = LARGEST,
        current: Callable[[V], V] | None = None,
    ) -> None:
        self._load, self._seconds, self._clock, self._largest = load, seconds, clock, largest
        self._current = current or (lambda value: value)
        self._kept: dict[K, tuple[float, V]] = {}
        self._lock = threading.Lock()

    def __call__(self, key: K) -> V:
        started = self._clock()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and started - kept[0] < self._seconds:
            return self._current(kept[1])
        value = self._load(key)
        with self._lock:
            self._kept.pop(key, None)
            if len(self._kept) >= self._largest:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = (started, value)
        return self._current(value)

    def last(self, key: K) -> tuple[float, V] | None:
        """(age in seconds, value) of what was loaded last, however old; None = nothing is kept any more. Loads nothing."""
        with self._lock:
            kept = self._kept.get(key)
        return None if kept is None else (self._clock() - kept[0], self._current(kept[1]))

    def forget(self) -> None:
        """Read everything again (tests; after a change in this process)."""
        with self._lock:
            self._kept.clear()
