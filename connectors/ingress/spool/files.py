"""The spool's folder on this host: `HEADRACE_STATE_DIR/spool`, read and written by every process of the installation here.

    <created>-<key>.journal                records that wait for the database (`connectors.ingress.spool.journal`)
    <created>-<key>-<place>.journal        one that the database refused, alone, so that it holds up no other
    aside/<name>.<place>.torn              the end of a write that was cut off; nobody was told that it is kept
    aside/<name>.<place>.damaged           bytes that no longer are what was written
    aside/<created>-<key>-<place>.refused  a record that the database does not take (`connectors.ingress.spool.set_aside`)
    aside/.<name>.reason                   what the database said of it
    drain.lock                             held by the process that drains
    endpoints.json                         last known endpoints (`connectors.ingress.spool.last_known`)

Each file has one writer, and is appended to and removed only under its own lock: who holds it sees whole writes, or the end of one
that was cut off. Nothing is ever rewritten.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from django.conf import settings

from projection.runtime.folder_names import FolderNames

ASIDE: Final = "aside"
BEGINNING_NS: Final = 10 * 10**9
"""An empty file younger than this has a writer that has just made it; older, its writer died."""
_names: Final = FolderNames()
_NAME: Final = re.compile(r"([0-9]{20})-([0-9a-f]{32})(?:-([0-9]+))?\.journal")


def folder() -> Path:
    """Where this host's spool is; it need not exist yet."""
    return Path(settings.HEADRACE_SPOOL_DIR)


@dataclass(frozen=True, slots=True, order=True)
class Journal:
    """One file of the spool. Sorted by when it was made: no record in it arrived earlier."""

    created_ns: int
    path: Path
    key: bytes
    place: int | None = None
    """Where its only record stood in the file that it was written to; None: the file is that one."""

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """None: no journal's name."""
        match = _NAME.fullmatch(path.name)
        return cls(int(match[1]), path, bytes.fromhex(match[2]), int(match[3]) if match[3] else None) if match else None

    def read_from(self, place: int) -> bytes:
        """The bytes from `place` to the end, between two writes. Raises FileNotFoundError."""
        with self.path.open("rb") as file, locked(file.fileno()):
            file.seek(place)
            return file.read()

    def remove_at(self, place: int) -> bool:
        """Remove the file if it ends at `place`; False = more was written meanwhile, or its writer is about to begin."""
        with suppress(FileNotFoundError), self.path.open("rb") as file, locked(file.fileno()):
            size = os.fstat(file.fileno()).st_size
            if size != place or (size == 0 and time.time_ns() - self.created_ns < BEGINNING_NS):
                return False
            self.path.unlink()
        return True


def name_of(created_ns: int, key: bytes, place: int | None = None) -> str:
    """The name of a journal; with a `place`, of one that holds the record from there alone."""
    part = "" if place is None else f"-{place}"
    return f"{created_ns:020d}-{key.hex()}{part}.journal"


@contextmanager
def locked(fd: int) -> Iterator[None]:
    """Hold a file's lock; waits for at most one write of another process."""
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def journals() -> list[Journal]:
    """Every journal, oldest first. A folder that is not there has none."""
    with suppress(FileNotFoundError):
        return sorted(found for entry in os.scandir(folder()) if (found := Journal.of(Path(entry.path))) is not None)
    return []


def is_empty() -> bool:
    """Whether nothing waits for the database here. One stat() of a folder, and a look into it when it has changed."""
    with suppress(FileNotFoundError):
        return not any(name.endswith(".journal") for name in _names.of(settings.HEADRACE_SPOOL_DIR))
    return True


@dataclass(frozen=True, slots=True)
class Usage:
    """How full this host's spool is. `oldest_ns`: when the oldest file was made, by this host's clock; None = nothing waits."""

    waiting_bytes: int
    aside_bytes: int
    aside_files: int
    oldest_ns: int | None

    @property
    def total_bytes(self) -> int:
        return self.waiting_bytes + self.aside_bytes


def usage() -> Usage:
    """What the folder holds now. Two folder reads and a stat for each file."""
    waiting = [(journal.created_ns, _size(journal.path)) for journal in journals()]
    aside = [_size(path) for path in aside_files()]
    oldest = min((created for created, _ in waiting), default=None)
    return Usage(sum(size for _, size in waiting), sum(aside), len(aside), oldest)


def aside_files() -> list[Path]:
    """What was set aside, oldest first."""
    with suppress(FileNotFoundError):
        return sorted(Path(entry.path) for entry in os.scandir(folder() / ASIDE) if not entry.name.startswith("."))
    return []


def set_aside(name: str, content: bytes) -> None:
    """Keep bytes for the operator, durably, under a name that says whence they come: doing it again changes nothing."""
    _write_whole(folder() / ASIDE, name, content)


def put_alone(one: Journal, start: int, record: bytes) -> Journal:
    """Give a record of a journal a file of its own, durably: doing it again changes nothing."""
    name = name_of(one.created_ns, one.key, start)
    _write_whole(folder(), name, record)
    return Journal(one.created_ns, folder() / name, one.key, start)


def _write_whole(place: Path, name: str, content: bytes) -> None:
    make_folder(place)
    draft = place / f".{name}.new"
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(place / name)
    sync_folder(place)


def requeue(path: Path) -> bool:
    """Give a refused record back to the drain; False = it is something else that was set aside."""
    target = folder() / path.with_suffix(".journal").name
    if path.suffix != ".refused" or Journal.of(target) is None:
        return False
    path.rename(target)
    return True


def make_folder(place: Path) -> None:
    """Make a folder of the spool for this user alone, durably."""
    if not place.is_dir():
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        sync_folder(place.parent)


def sync_folder(place: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
