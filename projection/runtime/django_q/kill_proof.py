"""What the processes of a cluster share, made so that a SIGKILL of any of them leaves nothing locked for the others.

The queues, values and events of `multiprocessing` hold a semaphore while they are read, an idle reader of a queue all the time. Who is
killed with it takes it along: no other process of that cluster would ever get a task again, or the guard itself would wait for ever.
Here readers share a socket, of which the kernel gives each packet to one of them, and values are single words of shared memory.
"""

from __future__ import annotations

import os
import select
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from ctypes import c_bool, c_float
from multiprocessing.reduction import ForkingPickler
from multiprocessing.sharedctypes import RawValue
from typing import Any, Final

from projection.logs import log_event
from projection.safe_text import error_text

INLINE_BYTES: Final = 3072
"""A larger message goes as a file without a name, whose descriptor the packet carries."""
SMALL_BUFFER_BYTES: Final = 8192
"""Room for about a dozen packets: who puts more waits, so that no cluster hoards tasks that another one could do."""
FILE_MARK: Final = b"F"
LOOK_MILLISECONDS: Final = 200
"""How often who waits for room looks whether anybody is left to make it."""


class Flag:
    """As an `Event` that is never cleared and that nobody waits for."""

    def __init__(self) -> None:
        self._raw = RawValue(c_bool, False)

    def set(self) -> None:
        self._raw.value = True

    def is_set(self) -> bool:
        return bool(self._raw.value)


class Timer:
    """As the `Value` in which a worker of django-q2 says what it does; a lost update costs a wrong remainder of a long time-out."""

    def __init__(self) -> None:
        self._raw = RawValue(c_float, -1.0)

    @property
    def value(self) -> float:
        return float(self._raw.value)

    @value.setter
    def value(self, value: float) -> None:
        self._raw.value = value

    def get_lock(self) -> AbstractContextManager[None]:
        return nullcontext()


class PacketQueue:
    """As the `Queue` of django-q2, for processes that are forked after it was made. Who is killed loses at most the message in hand.

    `small`: `put` waits while a dozen messages lie in it; else while some hundred do. Once `is_abandoned` says that nobody will ever read
    them it waits no longer, and the message is dropped.
    """

    def __init__(self, *, small: bool = False, is_abandoned: Callable[[], bool] = lambda: False) -> None:
        self._is_abandoned = is_abandoned
        self._reader, self._writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if small:
            self._writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER_BYTES)

    def put(self, message: Any) -> None:
        """Waits for room. What cannot be pickled is dropped and named in the log, as the library does."""
        try:
            data = bytes(ForkingPickler.dumps(message))
        except Exception as error:  # noqa: BLE001  # foreign objects may raise anything; the process that puts them goes on
            log_event("queue", level="error", error=error_text(error), reason="a message that cannot be pickled was dropped")
            return
        if len(data) <= INLINE_BYTES:
            self._send(b"P" + data)
            return
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.flush()
            self._send(FILE_MARK, [file.fileno()])

    def _send(self, packet: bytes, descriptors: Sequence[int] = ()) -> None:
        """Of several that wait for room one may be faster: then wait on."""
        room = select.poll()
        room.register(self._writer, select.POLLOUT)
        while True:
            if room.poll(LOOK_MILLISECONDS):
                with suppress(BlockingIOError):
                    socket.send_fds(self._writer, [packet], list(descriptors), socket.MSG_DONTWAIT)
                    return
            elif self._is_abandoned():
                log_event(
                    "queue",
                    level="warning",
                    reason="a message was dropped: the cluster stops, and no process is left that reads it",
                )
                return

    def get(self) -> Any:
        """The next message; waits for one."""
        data, descriptors, _, _ = socket.recv_fds(self._reader, INLINE_BYTES + 1, 1)
        if data != FILE_MARK:
            return ForkingPickler.loads(data[1:])
        with os.fdopen(descriptors[0], "rb") as file:
            file.seek(0)
            return ForkingPickler.loads(file.read())

    def empty(self) -> bool:
        """Whether nothing lies in it."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        return not poll.poll(0)

    def qsize(self) -> int:
        """1 when something lies in it: the kernel does not count."""
        return int(not self.empty())

    def close(self) -> None:
        """Nothing: what lies in it stays readable, and the process that made it ends next."""

    def join_thread(self) -> None:
        """Nothing: a message that was put is in the kernel's hands."""
