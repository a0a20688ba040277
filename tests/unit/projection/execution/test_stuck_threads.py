"""A process whose flow does not return leaves by force after its grace time, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from projection.execution import stuck_threads

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def none_given_up() -> Iterator[None]:
    stuck_threads._given_up.clear()
    yield
    stuck_threads._given_up.clear()


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


def test_without_a_stuck_flow_nothing_happens(exits: list[int]) -> None:
    stuck_threads.leave_if_stuck(0.0)
    assert exits == []


def test_a_flow_that_is_merely_late_may_return(exits: list[int]) -> None:
    release = threading.Event()
    late = threading.Thread(target=release.wait)
    late.start()
    stuck_threads.give_up(late)
    threading.Timer(0.02, release.set).start()
    stuck_threads.leave_if_stuck(10.0)
    stuck_threads.leave_if_stuck(0.0)
    assert exits == []


def test_a_flow_that_does_not_return_ends_the_process(exits: list[int]) -> None:
    release = threading.Event()
    hanging = threading.Thread(target=release.wait)
    hanging.start()
    stuck_threads.give_up(hanging)
    stuck_threads.leave_if_stuck(0.01)
    release.set()
    hanging.join()
    assert exits == [70]


PROGRAM = """
import threading
from concurrent.futures import ThreadPoolExecutor
from projection.execution import stuck_threads
started, threads = threading.Event(), []
def hang():
    threads.append(threading.current_thread())
    started.set()
    threading.Event().wait()
ThreadPoolExecutor(1).submit(hang)
started.wait()
stuck_threads.give_up(threads[0])
stuck_threads.leave_if_stuck(0.01)
"""


def test_a_real_process_with_a_hanging_pool_thread_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, timeout=30, check=False, capture_output=True, text=True)
    assert (ended.returncode, "did not return" in ended.stderr) == (70, True)
