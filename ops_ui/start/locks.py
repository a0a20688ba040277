"""File locks between the processes of one installation. The kernel drops them with the process, also after kill -9."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """A lock on `path` (made if absent): shared by many or exclusive to one. Not inherited by child processes."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock without waiting; False = another process is in the way (and a lock that was held before is lost)."""
        try:
            fcntl.flock(self._fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def keep_across_exec(self) -> None:
        """Let the program that this process becomes by exec hold the lock on."""
        os.set_inheritable(self._fd, True)

    def close(self) -> None:
        """Release the lock, if it was held. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def is_held(path: Path) -> bool:
    """Whether some process holds an exclusive lock on `path`."""
    if not path.exists():
        return False
    with FileLock(path) as lock:
        return not lock.acquire(shared=True)
