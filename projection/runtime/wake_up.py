"""Wake-ups between processes of one host: a datagram after commit, so that work starts at once instead of at the next poll.

Each resident loop listens on a Unix datagram socket named `<kind>.<pid>.<serial>.sock` in HEADRACE_WAKE_DIR; whoever commits work
sends one byte to every socket of the kind. Losing a datagram costs at most one poll interval; nothing depends on it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from django.conf import settings
from django.db import transaction

from projection.runtime.folder_names import FolderNames

Kind = Literal["route", "claim"]
_serial: Final = itertools.count()
_names: Final = FolderNames()


def _folder() -> Path:
    return Path(settings.HEADRACE_WAKE_DIR)


def notify(kind: Kind) -> None:
    """Tell every loop of `kind` on this host. Never blocks, never raises; a socket nobody listens on any more is removed."""
    try:
        names = [name for name in _names.of(settings.HEADRACE_WAKE_DIR) if name.startswith(f"{kind}.") and name.endswith(".sock")]
    except OSError:
        return
    if not names:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for target in (_folder() / name for name in names):
            try:
                sender.sendto(b"1", str(target))
            except ConnectionRefusedError:
                target.unlink(missing_ok=True)
            except OSError:  # full buffer: a wake-up is waiting there already; missing file: the loop just ended
                continue


def notify_after_commit(kind: Kind) -> None:
    """As `notify`, once the current transaction has committed (at once outside one)."""
    transaction.on_commit(lambda: notify(kind), robust=True)


class Listener:
    """The receiving end, a context manager. Without a usable folder it only sleeps: polling goes on."""

    def __init__(self, kind: Kind) -> None:
        self._path = _folder() / f"{kind}.{os.getpid()}.{next(_serial)}.sock"
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.unlink(missing_ok=True)
            receiver.bind(str(self._path))
        except OSError:
            receiver.close()
        else:
            receiver.setblocking(False)
            self._socket = receiver
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._socket is not None:
            self._socket.close()
            self._path.unlink(missing_ok=True)

    def wait(self, seconds: float) -> bool:
        """Sleep until a wake-up arrives or the time is over; True = woken. Wake-ups that piled up count as one."""
        if self._socket is None:
            select.select([], [], [], seconds)
            return False
        ready, _, _ = select.select([self._socket], [], [], seconds)
        if not ready:
            return False
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(64):
                pass
        return True
