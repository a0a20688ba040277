"""Writing to the spool: synced before it returns; a full or failing disk leaves the spool as it was."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connectors.ingress.spool import files, journal
from connectors.ingress.spool import writer as spool_writer
from connectors.ingress.spool.journal import Whole
from connectors.ingress.spool.writer import SpoolFull, SpoolWriter


@pytest.fixture
def folder(tmp_path: Path, settings: pytest.FixtureRequest) -> Path:
    settings.HEADRACE_SPOOL_DIR = tmp_path / "state" / "spool"
    return tmp_path / "state" / "spool"


@pytest.fixture
def writer(folder: Path) -> Iterator[SpoolWriter]:
    made = SpoolWriter()
    yield made
    made.close()


def kept() -> list[bytes]:
    found: list[bytes] = []
    for one in files.journals():
        for record in journal.records(one.read_from(0), one.key):
            assert isinstance(record, Whole)
            found.append(record.payload)
    return found


def test_the_record_and_the_files_name_are_synced_before_it_returns(
    writer: SpoolWriter, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, synced = os.fsync, []

    def note(fd: int) -> None:
        real(fd)
        synced.append((str(Path(f"/proc/self/fd/{fd}").readlink()), os.fstat(fd).st_size))

    monkeypatch.setattr(os, "fsync", note)
    writer.append(b"first")
    (one,) = files.journals()
    size = journal.HEADER_BYTES + len(b"first")
    assert (str(folder.parent), str(folder)) == tuple(path for path, _ in synced if path in (str(folder.parent), str(folder)))
    assert synced[-1] == (str(one.path), size)
    assert one.path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_records_follow_one_another_and_threads_take_turns(writer: SpoolWriter) -> None:
    bodies = [b"%d" % number * 50 for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(writer.append, bodies))
    assert sorted(kept()) == sorted(bodies)
    assert len(files.journals()) == 1


def test_a_file_that_has_grown_is_left_and_a_new_one_begun(writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_writer, "SEGMENT_BYTES", 100)
    for number in range(4):
        writer.append(b"%d" % number * 60)
    assert len(files.journals()) == 4
    assert kept() == [b"%d" % number * 60 for number in range(4)]


def test_the_bound_is_kept_and_room_counts_again(writer: SpoolWriter, settings: pytest.FixtureRequest, folder: Path) -> None:
    settings.HEADRACE_SPOOL_BYTES = 3 * (journal.HEADER_BYTES + 10)
    for _ in range(3):
        writer.append(b"x" * 10)
    with pytest.raises(SpoolFull, match="has reached its"):
        writer.append(b"")
    assert kept() == [b"x" * 10] * 3
    (one,) = files.journals()
    assert one.remove_at(one.path.stat().st_size)
    writer.append(b"y")
    assert kept() == [b"y"]


@pytest.mark.parametrize("written", [0, 1, 47, 48, 60])
@pytest.mark.parametrize("what", ["write", "fsync"])
def test_a_disk_that_is_full_in_the_middle_of_a_record_keeps_none_of_it(
    writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch, written: int, what: str
) -> None:
    writer.append(b"before")
    real_write, real_sync = os.write, os.fsync
    failing = threading.Event()

    def write(fd: int, data: memoryview) -> int:
        if what == "fsync" or failing.is_set() or written == 0:
            if what == "write":
                raise OSError(errno.ENOSPC, "No space left on device")
            return real_write(fd, data)
        failing.set()
        return real_write(fd, data[:written])

    def sync(fd: int) -> None:
        if what == "fsync" and not failing.is_set():
            failing.set()
            raise OSError(errno.EIO, "Input/output error")
        real_sync(fd)

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", write)
        broken.setattr(os, "fsync", sync)
        with pytest.raises(SpoolFull, match="cannot be written to"):
            writer.append(b"lost" * 20)
    assert kept() == [b"before"]
    writer.append(b"after")
    assert kept() == [b"before", b"after"]
    assert len(files.journals()) == 2, "a file that failed is not trusted again"


def test_what_cannot_be_taken_back_is_a_torn_tail(writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.append(b"before")
    real = os.write
    pieces = iter([lambda fd, data: real(fd, data[:50])])

    def write(fd: int, data: memoryview) -> int:
        piece = next(pieces, None)
        if piece is None:
            raise OSError(errno.EIO, "Input/output error")
        return piece(fd, data)

    def truncate(fd: int, length: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", write)
        broken.setattr(os, "ftruncate", truncate)
        with pytest.raises(SpoolFull):
            writer.append(b"lost" * 20)
    (one,) = files.journals()
    first, torn = journal.records(one.read_from(0), one.key)
    assert (type(first), torn) == (Whole, journal.Damaged(54, 104, torn=True))


def test_a_folder_that_cannot_be_made_is_a_full_spool(tmp_path: Path, settings: pytest.FixtureRequest) -> None:
    (tmp_path / "file").touch()
    settings.HEADRACE_SPOOL_DIR = tmp_path / "file" / "spool"
    with pytest.raises(SpoolFull, match="cannot be written to"):
        SpoolWriter().append(b"x")


def test_a_file_is_removed_only_at_its_end_and_its_writer_begins_another(writer: SpoolWriter) -> None:
    writer.append(b"one")
    (one,) = files.journals()
    end = one.path.stat().st_size
    writer.append(b"two")
    assert not one.remove_at(end)
    assert one.remove_at(one.path.stat().st_size)
    writer.append(b"three")
    assert kept() == [b"three"]
    assert not files.is_empty()


def test_an_empty_file_is_left_to_its_writer_for_a_while(writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer._ensure_file()
    (one,) = files.journals()
    assert not one.remove_at(0)
    monkeypatch.setattr(files, "BEGINNING_NS", 0)
    assert one.remove_at(0)
    assert files.is_empty()


def test_a_forked_process_has_a_file_of_its_own(writer: SpoolWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.append(b"parent")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    writer.append(b"child")
    assert kept() == [b"parent", b"child"]
    assert len(files.journals()) == 2
