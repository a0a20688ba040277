"""What a cluster's processes share: whoever is killed, and wherever, the others go on."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import pytest

from projection.runtime.django_q.kill_proof import INLINE_BYTES, Flag, PacketQueue, Timer

# Python 3.12 warns of a fork beside threads (pytest-xdist has one); the children here touch nothing that a thread may hold.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

PATIENCE_SECONDS = 20.0
FORK = multiprocessing.get_context("fork")


class Queues(Protocol):
    def __call__(self, *, small: bool = False) -> PacketQueue: ...


@pytest.fixture
def queue_of() -> Iterator[Queues]:
    """Makes queues; their sockets are closed at the end."""
    made: list[PacketQueue] = []

    def make(*, small: bool = False) -> PacketQueue:
        made.append(PacketQueue(small=small))
        return made[-1]

    yield make
    for queue in made:
        queue._reader.close()
        queue._writer.close()


@contextmanager
def forked(act: Callable[[], object]) -> Iterator[BaseProcess]:
    child = FORK.Process(target=act)
    child.start()
    try:
        yield child
    finally:
        child.kill()
        child.join(PATIENCE_SECONDS)


def until_it_sleeps_in_the_kernel(child: BaseProcess) -> None:
    """It waits for a message: nothing else that it does puts it to sleep."""
    ends = threading.Event()
    for _ in range(int(PATIENCE_SECONDS / 0.02)):
        if Path(f"/proc/{child.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "S":
            return
        ends.wait(0.02)
    raise AssertionError("it never came to wait")


@pytest.mark.parametrize("size", [0, INLINE_BYTES // 2, INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1, 3_000_000])
def test_a_message_arrives_as_it_was_put_whatever_its_size(queue_of: Queues, size: int) -> None:
    queue = queue_of(small=True)
    given = {"func": "a.b", "args": (1,), "result": "é" * size}
    queue.put(given)
    assert queue.get() == given
    assert queue.empty()


def test_messages_arrive_in_order(queue_of: Queues) -> None:
    queue = queue_of()
    assert (queue.empty(), queue.qsize()) == (True, 0)
    for number in range(20):
        queue.put(number)
    assert (queue.empty(), queue.qsize()) == (False, 1)
    assert [queue.get() for _ in range(20)] == list(range(20))


def test_what_cannot_be_pickled_is_dropped_and_said(queue_of: Queues, capsys: pytest.CaptureFixture[str]) -> None:
    queue = queue_of()
    queue.put({"func": lambda: None})
    queue.put("next")
    assert queue.get() == "next"
    assert "a message that cannot be pickled was dropped" in capsys.readouterr().err


def test_who_puts_more_than_a_dozen_waits_until_somebody_takes_them(queue_of: Queues) -> None:
    queue, put = queue_of(small=True), []

    def fill() -> None:
        for number in range(100):
            queue.put("x" * 500)
            put.append(number)

    filling = threading.Thread(target=fill)
    filling.start()
    filling.join(0.5)  # it is to stand still: nothing says so but time
    assert filling.is_alive()
    assert 4 <= len(put) <= 30
    assert [queue.get() for _ in range(100)] == ["x" * 500] * 100
    filling.join(PATIENCE_SECONDS)
    assert len(put) == 100


def test_a_reader_that_is_killed_while_it_waits_takes_nothing_along(queue_of: Queues) -> None:
    """With `multiprocessing.Queue` nobody would ever read again: the killed reader holds its lock."""
    tasks, results = queue_of(), queue_of()

    def work() -> None:
        while True:
            results.put((os.getpid(), tasks.get()))

    with forked(work) as first, forked(work) as second:
        for child in (first, second):
            until_it_sleeps_in_the_kernel(child)
        os.kill(first.pid or 0, signal.SIGKILL)
        first.join(PATIENCE_SECONDS)
        for number in range(50):
            tasks.put(number)
        assert [results.get() for _ in range(50)] == [(second.pid, number) for number in range(50)]


def test_each_message_goes_to_one_reader(queue_of: Queues) -> None:
    tasks, results = queue_of(), queue_of()

    def work() -> None:
        for number in iter(tasks.get, "STOP"):
            results.put(number)

    with forked(work), forked(work), forked(work):
        seen = []
        for number in range(300):
            tasks.put(number)
            seen.append(results.get())
    assert sorted(seen) == list(range(300))


@pytest.mark.parametrize("change", [lambda flag, _: flag.set(), lambda _, timer: setattr(timer, "value", 7.0)])
def test_values_are_shared_by_who_is_forked(change: Callable[[Flag, Timer], Any]) -> None:
    flag, timer = Flag(), Timer()
    assert (flag.is_set(), timer.value) == (False, -1.0)
    with forked(lambda: change(flag, timer)) as child:
        child.join(PATIENCE_SECONDS)
    assert (flag.is_set(), timer.value) in [(True, -1.0), (False, 7.0)]


def test_a_timer_has_no_lock_to_be_killed_with() -> None:
    timer = Timer()

    def work() -> None:
        with timer.get_lock():
            timer.value -= 1
            signal.pause()

    with forked(work) as child:
        until_it_sleeps_in_the_kernel(child)
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join(PATIENCE_SECONDS)
    with timer.get_lock():
        assert timer.value == -2.0


def test_who_waits_for_room_in_an_abandoned_queue_waits_no_longer(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a cluster that stops when each of its workers ended after one task."""
    is_abandoned = threading.Event()
    queue = PacketQueue(small=True, is_abandoned=is_abandoned.is_set)
    try:

        def fill() -> None:
            for number in itertools.count():
                if is_abandoned.is_set():
                    return
                queue.put(number)

        fills = threading.Thread(target=fill)
        fills.start()
        fills.join(0.5)
        assert fills.is_alive(), "it waits while somebody may read"
        is_abandoned.set()
        fills.join(PATIENCE_SECONDS)
    finally:
        queue._reader.close()
        queue._writer.close()
        fills.join(PATIENCE_SECONDS)
    assert "no process is left that reads it" in capsys.readouterr().err
