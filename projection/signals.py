"""SIGTERM and SIGINT as a stop flag: a loop ends after what it is doing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """The flag; the signals' former handling comes back at the end."""
    stopped = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    former = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: stopped
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
