"""What processes counted outlives them, in one file; files of ended processes do not pile up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops_ui.monitoring import counter_file, counter_files

COUNT = """
import os, sys
from ops_ui.monitoring import counter_file
counter_file.use()
from prometheus_client import Counter, Gauge, Histogram
counter = Counter("t_total", "T.", ["label"])
histogram = Histogram("t_seconds", "T.", buckets=(1, 2))
gauge = Gauge("t_live", "T.", multiprocess_mode="livesum")
counter.labels("a").inc(2)
histogram.observe(1.5)
gauge.set(7)
print("counted", flush=True)
sys.stdin.read()
"""


class Counting:
    """A process that has counted, and lives until it is told to end."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {counter_file.VARIABLE: str(folder)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", COUNT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "counted\n"

    def end(self) -> None:
        self.process.communicate("")


def values(folder: Path) -> dict[str, float]:
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values()): sample.value
        for metric in counter_files.read(folder)
        for sample in metric.samples
    }


def test_what_ended_processes_counted_stays_in_one_file(tmp_path: Path) -> None:
    for _ in range(3):
        Counting(tmp_path).end()
    assert len(list(tmp_path.glob("counter_*.db"))) == 3
    found = values(tmp_path)
    assert (found["t_total/a"], found["t_seconds_bucket/1.0"], found["t_seconds_bucket/2.0"]) == (6, 0, 3)
    assert found["t_seconds_sum"] == 4.5
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["counter_ended.db", "histogram_ended.db"]
    Counting(tmp_path).end()
    assert values(tmp_path)["t_total/a"] == 8
    assert values(tmp_path)["t_total/a"] == 8
    assert len(list(tmp_path.glob("*.db"))) == 2


def test_a_process_that_lives_goes_on_counting_in_its_own(tmp_path: Path) -> None:
    living = Counting(tmp_path)
    try:
        Counting(tmp_path).end()
        assert values(tmp_path)["t_total/a"] == 4
        assert (tmp_path / f"counter_{living.process.pid}.db").exists()
        assert values(tmp_path)["t_live"] == 7, "the gauge of the one that ended is gone"
    finally:
        living.end()


def test_several_restarts_leave_no_more_than_one(tmp_path: Path) -> None:
    for _ in range(2):
        Counting(tmp_path).end()
    assert counter_files.add_up_ended(tmp_path) == 2
    assert counter_files.add_up_ended(tmp_path) == 0


def test_a_number_of_somebody_elses_process_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(tmp_path).end()

    def refused(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert counter_files.add_up_ended(tmp_path) == 0
    assert values(tmp_path)["t_total/a"] == 2


def test_without_a_folder_a_process_keeps_its_counters_to_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(counter_file.VARIABLE, raising=False)
    assert counter_files.folder() is None
    monkeypatch.setenv(counter_file.VARIABLE, str(tmp_path / "away"))
    assert counter_files.folder() is None
