"""Names in a folder of this host, read again only when it has changed: a look costs one stat() instead of a walk."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STILL_NS: Final = 2 * 10**9
"""A change within one tick of the file system's clock (up to 1 s) may leave the time of the change before it: names are remembered
only of a folder that has been still for longer."""


@dataclass(frozen=True, slots=True)
class _Seen:
    place: tuple[int, int]
    changed_ns: int
    names: tuple[str, ...]


class FolderNames:
    """Remembers the last folder that it was asked about. Threads may share it; each answer is true of some moment of the call."""

    def __init__(self) -> None:
        self._seen: _Seen | None = None

    def of(self, folder: Path) -> tuple[str, ...]:
        """Every name in `folder`, in no order. Raises OSError (FileNotFoundError: it is not there)."""
        facts = os.stat(folder)  # noqa: PTH116 - Path.stat() costs as much again, and this is asked for each delivery
        seen, place = self._seen, (facts.st_dev, facts.st_ino)
        if seen is not None and (seen.place, seen.changed_ns) == (place, facts.st_mtime_ns):
            return seen.names
        names = tuple(os.listdir(folder))  # noqa: PTH208 - names are wanted, not paths
        if time.time_ns() - facts.st_mtime_ns > STILL_NS:
            self._seen = _Seen(place, facts.st_mtime_ns, names)
        return names
