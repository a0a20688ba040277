"""A body that comes too slowly is cut off: each thread of the web server that waits for one is missing to all other senders.

The web server itself has no such limit. One thread of each process watches; registering costs a lock and two dictionary writes.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Final

BODY_SECONDS: Final = 20.0
"""For a whole body. Providers wait 3 to 10 s for the answer, so a body that takes longer is read for nobody."""
TICK_SECONDS: Final = 1.0

_lock = threading.Lock()
_awaited: dict[int, tuple[float, socket.socket]] = {}
_watcher: tuple[int, threading.Thread] | None = None
"""Process id and thread: a forked process has the variable, not the thread."""


class cut_off_later:
    """While the block runs, its connection gives no more bytes after `BODY_SECONDS`: reading ends as if the sender had stopped."""

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        if self._connection is not None:
            with _lock:
                _awaited[id(self._connection)] = (monotonic() + BODY_SECONDS, self._connection)
                _ensure_watcher()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._connection is not None:
            with _lock:
                _awaited.pop(id(self._connection), None)


def _ensure_watcher() -> None:
    global _watcher  # noqa: PLW0603 - one thread a process
    if _watcher is None or _watcher[0] != os.getpid():
        thread = threading.Thread(target=_watch, name="body-deadline", daemon=True)
        _watcher = (os.getpid(), thread)
        thread.start()


def _watch() -> None:
    pause = threading.Event()
    while True:
        pause.wait(TICK_SECONDS)
        now = monotonic()
        with _lock:
            for deadline, connection in _awaited.values():
                if now >= deadline:
                    with suppress(OSError):  # it may have gone meanwhile
                        connection.shutdown(socket.SHUT_RD)
