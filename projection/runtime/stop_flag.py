"""Stop flags: what tells a loop to end after what it is doing.

A command ends by a signal (`stop_on_signals`). A loop inside a django-q2 cluster watches a flag of its own
(`django_q/cluster_stop.py`).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Stop = Callable[[], bool]
"""Asked between two pieces of work: whether the loop ends now."""


def never() -> bool:
    """The stop flag of a loop that only ends with its work."""
    return False


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """SIGTERM and SIGINT as a stop flag: a loop ends after what it is doing. Their former handling comes back at the end."""
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
