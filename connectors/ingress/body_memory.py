"""Memory for bodies: all large ones that a process holds at once share one room. Small ones always fit.

A body costs a few times its size until it is stored (escaped for the statement), so without this the threads of a process could hold
a gigabyte of them. Who finds the room full waits a little, then is answered 503.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Self

ROOM_BYTES: Final = 64 * 1024 * 1024
"""At once, in a process: two of the largest bodies that GitHub sends, or twelve of those that other packs accept."""
SMALL_BYTES: Final = 256 * 1024
"""Of each body this much is free: its threads are few."""
WAIT_SECONDS: Final = 4.0
"""Less than the strictest of the providers that send large bodies waits for its answer."""


class Hold:
    """What one request holds of the room until its block ends; nothing at first."""

    def __init__(self, room: BodyRoom) -> None:
        self._room = room
        self.held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.held:
            self._room.give_back(self.held)

    def take(self, size: int) -> bool:
        """Hold `size` bytes in all, waiting for them if need be; False = there was no room in time."""
        more = size - self.held
        if more <= 0:
            return True
        if not self._room.take(more):
            return False
        self.held = size
        return True


class BodyRoom:
    """Shared by the threads of a process. A body that is larger than the whole room fits when it is alone."""

    def __init__(self, most: int = ROOM_BYTES, wait_seconds: float = WAIT_SECONDS) -> None:
        self._most, self._wait_seconds = most, wait_seconds
        self._used = 0
        self._changed = threading.Condition()

    def hold(self) -> Hold:
        """What a request will hold; a context manager."""
        return Hold(self)

    def take(self, size: int) -> bool:
        with self._changed:
            fits = self._changed.wait_for(lambda: not self._used or self._used + size <= self._most, self._wait_seconds)
            if fits:
                self._used += size
            return fits

    def give_back(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()


room: Final = BodyRoom()
