"""Counters on a disk that is full, or breaks: the process lives, and what it counted is there once the disk takes it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.mmap_dict import MmapedDict

from ops_ui.monitoring import counter_file, counter_files
from ops_ui.monitoring.counter_file import CounterFile
from tests.support.small_disk import SmallDisk, small_disk

COUNT = """
import sys
from ops_ui.monitoring import counter_file
counter_file.use()
counter_file.PAUSE_SECONDS = 0.0
from prometheus_client import Counter, Histogram
counter = Counter("t_total", "T.", ["label"])
histogram = Histogram("t_seconds", "T.", ["label"], buckets=(1, 2))
for line in sys.stdin:
    for number in range(int(line)):
        counter.labels(str(number)).inc()
        histogram.labels(str(number)).observe(1.5)
    print("counted", flush=True)
"""
SERIES = 400
"""Enough for several pages of a file."""


class Counting:
    """A process that counts when it is told to."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {counter_file.VARIABLE: str(folder)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", COUNT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def count(self, series: int) -> None:
        """One of each of the first `series`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{series}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "counted\n", f"the process ended with {self.process.wait()}"

    def end(self) -> None:
        self.process.communicate("")


def totals(folder: Path) -> list[tuple[float, float]]:
    """Of each label: the counter, and the histogram's number of values."""
    found = {
        (sample.name, sample.labels["label"]): sample.value
        for metric in counter_files.read(folder)
        for sample in metric.samples
        if sample.name in ("t_total", "t_seconds_count")
    }
    return [(found.get(("t_total", str(n)), 0.0), found.get(("t_seconds_count", str(n)), 0.0)) for n in range(SERIES)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "1m") as made:
        yield made


def test_a_process_that_counts_lives_through_a_full_disk(disk: SmallDisk) -> None:
    counting = Counting(disk.folder)
    counting.count(3)
    disk.fill()
    counting.count(SERIES)
    assert totals(disk.folder)[:3] == [(2, 2)] * 3, "what has its place is written"
    disk.free()
    counting.count(1)
    assert totals(disk.folder) == [(3, 3), (2, 2), (2, 2), *[(1, 1)] * (SERIES - 3)]
    counting.end()
    assert totals(disk.folder) == [(3, 3), (2, 2), (2, 2), *[(1, 1)] * (SERIES - 3)]


def test_a_process_that_starts_on_a_full_disk_counts(disk: SmallDisk) -> None:
    disk.fill()
    counting = Counting(disk.folder)
    counting.count(SERIES)
    assert totals(disk.folder) == [(0, 0)] * SERIES
    disk.free()
    counting.count(1)
    assert totals(disk.folder) == [(2, 2), *[(1, 1)] * (SERIES - 1)]
    counting.end()


def test_ended_processes_are_added_up_once_the_disk_takes_it(disk: SmallDisk) -> None:
    for _ in range(2):
        counting = Counting(disk.folder)
        counting.count(SERIES)
        counting.end()
    disk.fill()
    assert counter_files.add_up_ended(disk.folder) == 0
    assert totals(disk.folder) == [(2, 2)] * SERIES, "they are read one by one meanwhile"
    assert not list(disk.folder.glob("*.draft"))
    disk.free()
    assert counter_files.add_up_ended(disk.folder) == 2
    assert totals(disk.folder) == [(2, 2)] * SERIES


def stored(path: Path) -> dict[str, float]:
    if not counter_file.is_readable(path):
        return {}
    return {key: value for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path))}  # type: ignore[no-untyped-call]


WRITES = 13
"""The header; and for each of four keys its entry, the header, and its number."""


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
@pytest.mark.parametrize("failing", range(WRITES))
def test_a_write_that_fails_anywhere_loses_no_number(
    failing: int, torn: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_file, "PAUSE_SECONDS", 0.0)
    path, writes, pwrite = tmp_path / "counter_1.db", iter(range(10_000)), os.pwrite

    def sometimes(fd: int, piece: Any, position: int) -> int:
        if next(writes) != failing:
            return pwrite(fd, piece, position)
        if torn:
            pwrite(fd, bytes(piece)[: len(piece) // 2], position)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwrite", sometimes)
    file = CounterFile(str(path))
    expected: dict[str, float] = {}
    for number in range(4):
        key = f'["t", "t_total", {{"label": "{number}"}}, "T."]'
        assert file.read_value(key) == (0.0, 0.0)
        file.write_value(key, number + 1.0, 0.0)
        expected[key] = number + 1.0
        assert all(value <= expected[key] for key, value in stored(path).items())
    file.write_value(key, 9.0, 0.0)
    assert stored(path) == expected | {key: 9.0}
    file.close()
    assert CounterFile(str(path)).read_value(key) == (9.0, 0.0), "a process of the same number goes on from there"


def test_a_disk_that_refuses_is_asked_once_in_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_file, "PAUSE_SECONDS", 3600.0)
    asked = []

    def full(fd: int, piece: Any, position: int) -> int:
        asked.append(position)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    file = CounterFile(str(tmp_path / "counter_1.db"))
    for number in range(100):
        file.write_value("key", float(number), 0.0)
    assert len(asked) == 1
    assert file.read_value("key") == (99.0, 0.0)


def test_a_folder_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    file = CounterFile(str(tmp_path / "gone" / "counter_1.db"))
    assert file.read_value("key") == (0.0, 0.0)
    file.write_value("key", 1.0, 0.0)
    assert file.read_value("key") == (1.0, 0.0)
    file.close()
