"""What a process does to itself when it comes to the point that its test has chosen."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from tests.faults.orders import DROP, At
from tests.faults.points import Place


class CommitPoints:
    """Counts the commit points of this process and writes each down before it is passed, so that a kill leaves the list behind."""

    def __init__(self, path: Path, at: At | None) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._at = at
        self._lock = threading.Lock()
        self._passed = 0
        self._mine = threading.local()

    def before(self, place: Place) -> None:
        if place.durable is None:
            return
        with self._lock:
            os.write(self._fd, f"{place.durable}\n".encode())
            counts = self._at is not None and place.durable.startswith(self._at.room)
            self._passed += counts
            self._mine.number = self._passed if counts else 0
            self._meet("before", place)

    def after(self, place: Place) -> None:
        if place.durable is not None:
            self._meet("after", place)

    def _meet(self, side: str, place: Place) -> None:
        at = self._at
        if at is None or (at.number, at.side) != (self._mine.number, side):
            return
        if at.signal == DROP:
            drop(place.connection)
        else:
            to_itself(at.signal)


def to_itself(number: int) -> None:
    """The signal to this very thread: it is there when the call returns, and with it the whole process stands still, or is gone."""
    signal.pthread_kill(threading.get_ident(), number)


def drop(own: Any) -> None:
    """The server ends this connection, told so by another one."""
    number = own.connection.thread_id()
    other = own.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(f"KILL {number}")
    finally:
        other.close()
