"""Stuck threads: flows that did not return in time. A process with any of them leaves by force (docs/protocol.md#timeouts).

Python waits for every pool thread when a process ends, so a flow that never returns would keep its worker from ever being replaced.
"""

from __future__ import annotations

import os
import sys
import threading
from time import monotonic
from typing import Final

from projection.logs import log_event

GRACE_SECONDS: Final = 10.0
"""How long a flow that is merely late may still return, once its worker has nothing else to do."""
ATOMIC_GRACE_SECONDS: Final = 60.0
"""How long an atomic flow may overrun its time-out, with the completion behind it that may wait for locks, before its process leaves:
it runs in the worker's own thread, so nothing else would ever end it."""
EXIT_CODE: Final = 70
"""EX_SOFTWARE: whoever watches the process starts it again."""

_given_up: set[threading.Thread] = set()


def give_up(thread: threading.Thread) -> None:
    """The thread's flow is past its time-out; its attempt is recorded, its late result is dropped."""
    _given_up.add(thread)


def leave_if_stuck(grace_seconds: float = GRACE_SECONDS) -> None:
    """End this process at once if a given-up thread still has not returned after the grace time; does nothing when there is none.

    Call it where a worker has come to its end: its leases are dropped and its row is gone, so that nothing is lost by it.
    """
    ends = monotonic() + grace_seconds
    for thread in list(_given_up):
        thread.join(max(0.0, ends - monotonic()))
        if not thread.is_alive():
            _given_up.discard(thread)
    if _given_up:
        leave_now(f"{len(_given_up)} flows did not return in time; the process exits without waiting for them")


def leave_now(reason: str) -> None:
    """End this process at once; what it had not committed is rolled back, and its leases run out."""
    log_event("worker", level="error", reason=reason)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_CODE)
