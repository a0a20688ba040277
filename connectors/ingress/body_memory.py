"""Memory for bodies: all large ones that a process holds at once share one room. Small ones always fit.

A body costs a few times its size until it is stored (escaped for the statement), so without this the threads of a process could hold
a gigabyte of them. A body holds what has arrived of it. Who finds the room full waits a little, then is answered 503; but one body at a
time may go beyond the room, or those that have half of theirs each would wait for one another until all were refused.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Self

ROOM_BYTES: Final = 64 * 1024 * 1024
"""At once, in a process: two of the largest bodies that GitHub sends, or twelve of those that other packs accept, and one more."""
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
        self._room.give_back(self)

    def take(self, size: int) -> bool:
        """Hold `size` bytes in all, waiting for them if need be; False = there was no room in time."""
        if size <= self.held:
            return True
        if not self._room.take(self, size - self.held):
            return False
        self.held = size
        return True


class BodyRoom:
    """Shared by the threads of a process: `most` bytes, and what one body needs beyond them."""

    def __init__(self, most: int = ROOM_BYTES, wait_seconds: float = WAIT_SECONDS) -> None:
        self._most, self._wait_seconds = most, wait_seconds
        self._used = 0
        self._beyond: Hold | None = None
        """The one whose body may go beyond the room until it is stored."""
        self._changed = threading.Condition()

    def hold(self) -> Hold:
        """What a request will hold; a context manager."""
        return Hold(self)

    def take(self, hold: Hold, size: int) -> bool:
        """Add `size` bytes to what `hold` has; False = they were not free in time."""
        with self._changed:
            fits = self._changed.wait_for(lambda: self._fits(hold, size), self._wait_seconds)
            if fits:
                self._used += size
                if self._used > self._most:
                    self._beyond = hold
            return fits

    def _fits(self, hold: Hold, size: int) -> bool:
        return self._used + size <= self._most or self._beyond in (None, hold)

    def give_back(self, hold: Hold) -> None:
        with self._changed:
            self._used -= hold.held
            hold.held = 0
            if self._beyond is hold:
                self._beyond = None
            self._changed.notify_all()


room: Final = BodyRoom()
