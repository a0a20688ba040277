"""A disk of a few pages that a test fills, and empties again."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A file system of its own, mounted at `folder`."""

    folder: Path

    def fill(self) -> None:
        """Until not one more byte is taken."""
        with (self.folder / "filling").open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * PAGE_BYTES)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def free(self) -> None:
        (self.folder / "filling").unlink()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """Mount a tmpfs of `size` (as mount(8) takes it) at an empty folder. Skips the test where mounting is not allowed."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a disk of its own cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
