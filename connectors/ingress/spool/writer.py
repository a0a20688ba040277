"""Writing to the spool: a payload is on the disk, with the name of its file, when `append` returns; else it is as if never written."""

from __future__ import annotations

import os
import threading
import time
import uuid
from contextlib import suppress
from typing import Final

from django.conf import settings

from connectors.ingress.spool import files, journal
from connectors.ingress.spool.files import locked

SEGMENT_BYTES: Final = 8 * 1024 * 1024
"""A file that has grown past this is left to the drain, which reads a file at once and removes it whole."""


class SpoolFull(Exception):
    """The spool holds as much as HEADRACE_SPOOL_BYTES allows, or its disk is full or broken: the delivery was not kept."""


class SpoolWriter:
    """The one writer of a process: threads take turns, each process has a file of its own.

    The bound may be overrun by one delivery for each other process that writes at the same moment.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._pid = 0
        self._fd = -1
        self._path = files.folder()
        self._key = b""

    def append(self, payload: bytes) -> None:
        """Keep a payload durably. Raises SpoolFull, and then it will not be drained (unless the disk does not even take it back)."""
        with self._turn:
            try:
                if files.usage().total_bytes + len(payload) + journal.HEADER_BYTES > settings.HEADRACE_SPOOL_BYTES:
                    raise SpoolFull(f"the spool has reached its {settings.HEADRACE_SPOOL_BYTES} bytes")
                while not self._is_written(payload):
                    self._leave_file()
            except OSError as error:
                self._leave_file()
                raise SpoolFull(f"the spool cannot be written to ({error.strerror or error})") from error

    def close(self) -> None:
        """Leave the file to the drain."""
        with self._turn:
            self._leave_file()

    def _is_written(self, payload: bytes) -> bool:
        """Append and sync; False = the drain was done with the file, and removed it, since our last write."""
        self._ensure_file()
        with locked(self._fd):
            facts = os.fstat(self._fd)
            if facts.st_nlink:
                _write(self._fd, facts.st_size, journal.framed(payload, self._key))
            return facts.st_nlink > 0

    def _ensure_file(self) -> None:
        """Have a file of this process, in the folder of now, that is not too long."""
        stale = self._pid != os.getpid() or self._path.parent != files.folder()
        if self._fd >= 0 and (stale or os.fstat(self._fd).st_size >= SEGMENT_BYTES):
            self._leave_file()
        if self._fd < 0:
            place = files.folder()
            files.make_folder(place)
            self._key = uuid.uuid4().bytes
            self._path = place / files.name_of(time.time_ns(), self._key)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._pid = os.getpid()
            files.sync_folder(place)

    def _leave_file(self) -> None:
        if self._fd >= 0:
            with suppress(OSError):
                os.close(self._fd)
        self._fd = -1


def _write(fd: int, end: int, record: bytes) -> None:
    """Append a record at `end` and sync. An error takes back what was written, and is raised."""
    try:
        rest = memoryview(record)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    except OSError:
        with suppress(OSError):  # what cannot be taken back is torn, which the drain sees by itself
            os.ftruncate(fd, end)
            os.fsync(fd)
        raise
