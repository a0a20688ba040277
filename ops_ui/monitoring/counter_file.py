"""A process's file of counters, written so that a full disk cannot end the process.

prometheus-client maps its files into memory. Where the disk has no space for a page, the kernel answers a write into the map with
SIGBUS, and the process is gone with all requests that it serves. Here a number is written by pwrite(2), which fails with an error
instead: the number waits in memory, and later ones are written again once the disk takes them. Copy-on-write disks, quotas and
defects are met the same way, which space that is allocated ahead is not.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
PAUSE_SECONDS: Final = 1.0
"""Between two tries to write to a disk that refused; a request must not pay for each of its counters."""
HEADER_BYTES: Final = 8
_USED: Final = struct.Struct("ixxxx")
_LENGTH: Final = struct.Struct("i")
_NUMBERS: Final = struct.Struct("dd")
_pack_numbers: Final = _NUMBERS.pack

Numbers = tuple[float, float]
"""A value and its time stamp, which counters leave at 0."""


def use() -> None:
    """Have the counters of this process written by `CounterFile`; before the first of them is made."""
    values.MmapedDict = CounterFile  # type: ignore[attr-defined,assignment]  # it stands for it, and has no other way in


def content(numbers: Mapping[str, Numbers]) -> bytes:
    """A whole file, in the format of prometheus-client."""
    entries = b"".join(_entry(key, one) for key, one in numbers.items())
    return _USED.pack(HEADER_BYTES + len(entries)) + entries


class CounterFile:
    """Stands for prometheus-client's `MmapedDict`: the same format, and called under the same lock. Raises nothing that a disk causes.

    Logs nothing: the log's lines are counted, under the lock that the caller holds.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._used = 0
        self._positions: dict[str, int] = {}
        self._waiting: dict[str, Numbers] = {}
        self._not_before = 0.0

    def read_value(self, key: str) -> Numbers:
        """What the file holds under `key`, which is made; 0 where it cannot be read or made."""
        if key in self._waiting:
            return self._waiting[key]
        try:
            self._open()
            if key in self._positions:
                return _NUMBERS.unpack(os.pread(self._fd, _NUMBERS.size, self._positions[key]))
        except (OSError, struct.error):
            self._not_before = monotonic() + PAUSE_SECONDS
        self.write_value(key, 0.0, 0.0)
        return 0.0, 0.0

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Write a total, or keep it until the disk takes it: a later one of the same key takes its place."""
        if not self._waiting:
            try:
                if os.pwrite(self._fd, _pack_numbers(value, timestamp), self._positions[key]) == _NUMBERS.size:
                    return
            except (KeyError, OSError):  # a new key, or a disk that refuses: the longer way finds out
                pass
        self._waiting[key] = (value, timestamp)
        if not self._not_before or monotonic() >= self._not_before:
            self._write_waiting()

    def _write_waiting(self) -> None:
        try:
            self._open()
            for key, numbers in list(self._waiting.items()):
                self._write(key, numbers)
                del self._waiting[key]
            self._not_before = 0.0
        except OSError:
            self._not_before = monotonic() + PAUSE_SECONDS

    def close(self) -> None:
        """Leave the file, as it is, to those who read it."""
        if self._fd >= 0:
            with suppress(OSError):
                os.close(self._fd)
        self._fd = -1

    def _open(self) -> None:
        """Open or make the file. A process that had our number before us leaves its counts to be continued."""
        if self._fd >= 0:
            return
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            used = HEADER_BYTES
            if os.fstat(fd).st_size < HEADER_BYTES:
                _write_all(fd, _USED.pack(used), 0)
            else:
                used = max(used, _USED.unpack(os.pread(fd, _USED.size, 0))[0])
                found = MmapedDict.read_all_values_from_file(self._path)  # type: ignore[no-untyped-call]  # it has no annotations
                self._positions = {key: position for key, _, _, position in found}
        except OSError:
            os.close(fd)
            raise
        self._fd, self._used = fd, used

    def _write(self, key: str, numbers: Numbers) -> None:
        """A new key counts as written once the header covers it: what a full disk tore is written over."""
        position = self._positions.get(key)
        if position is not None:
            _write_all(self._fd, _pack_numbers(*numbers), position)
            return
        entry = _entry(key, numbers)
        end = self._used + len(entry)
        _write_all(self._fd, entry, self._used)
        _write_all(self._fd, _USED.pack(end), 0)
        self._used, self._positions[key] = end, end - _NUMBERS.size


def _entry(key: str, numbers: Numbers) -> bytes:
    text = key.encode()
    padded = text + b" " * (8 - (len(text) + _LENGTH.size) % 8)
    return _LENGTH.pack(len(text)) + padded + _pack_numbers(*numbers)


def _write_all(fd: int, piece: bytes, position: int) -> None:
    rest = memoryview(piece)
    while rest:
        written = os.pwrite(fd, rest, position)
        rest, position = rest[written:], position + written


def is_readable(path: Path) -> bool:
    """Whether a file has its header: one that was made on a full disk may be empty."""
    try:
        return path.stat().st_size >= HEADER_BYTES
    except FileNotFoundError:  # a process ended, and its file was added up
        return False
