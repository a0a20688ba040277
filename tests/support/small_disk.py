"""Disks that a test fills, and empties again."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PIECES = (64 * 1024 * 1024, 1024 * 1024, 4096)
"""Bytes that are taken at once: large ones, then what is left."""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A file system of its own, mounted at `folder`."""

    folder: Path

    def fill(self) -> None:
        """Until not one more page is taken. Nothing is written: the space is the file's, and no other's."""
        with (self.folder / "filling").open("ab") as file:
            for piece in PIECES:
                with _until_full():
                    while True:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, piece)

    def free(self) -> None:
        (self.folder / "filling").unlink()


@contextmanager
def _until_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A disk in memory of `size` (as mount(8) takes it) at an empty folder. Skips the test where mounting is not allowed."""
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        yield SmallDisk(folder)


@contextmanager
def block_disk(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """An ext4 disk in a file: where a page cannot be written, the writer gets an error, as on a real disk. Skips like `small_disk`."""
    maker = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    if maker is None:
        pytest.skip("mkfs.ext4 is not installed")
    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(mebibytes * 1024 * 1024)
    subprocess.run([maker, "-q", "-m", "0", image], check=True)
    with _mounted(folder, "-o", "loop", str(image)):
        (folder / "lost+found").rmdir()
        yield SmallDisk(folder)
    image.unlink()


@contextmanager
def _mounted(folder: Path, *what: str) -> Iterator[None]:
    folder.mkdir()
    done = subprocess.run(["mount", *what, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a disk of its own cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
