"""A resident loop: does what there is to do, then sleeps until a wake-up or a poll; ends by its budget or a stop, by no single fault."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from projection.database.outages import forget_connection, is_full, is_outage, is_read_only
from projection.logs import log_event
from projection.runtime.stop_flag import Stop
from projection.runtime.wake_up import Kind, Listener
from projection.safe_text import error_text

POLL_SECONDS: Final = 1.0
"""Longest sleep of an idle loop: what a missed wake-up costs."""
LONGEST_BACKOFF_SECONDS: Final = 15.0
"""Ceiling of the pause while the database is away."""


def resident(kind: Kind, step: Callable[[], int], pause: Callable[[], float], budget_seconds: float | None, stop: Stop) -> int:
    """Repeat `step` until `stop()` or the budget is over; number of things done. Where it finds nothing, sleep until a wake-up of `kind`,
    at most `pause()` seconds.

    While the database is away it waits with a growing pause and says so in one line per try; nothing is lost meanwhile.
    """
    ends = monotonic() + budget_seconds if budget_seconds is not None else float("inf")
    done, failures = 0, 0
    with Listener(kind) as listener:
        while not stop() and monotonic() < ends:
            try:
                count = step()
                failures = 0
            except Exception as error:  # noqa: BLE001 - a resident loop outlives any single fault; it says so and tries again
                forget_connection()
                failures += 1
                wait = min(LONGEST_BACKOFF_SECONDS, 0.2 * 2.0 ** min(failures, 10))
                log_event(kind, level="error", error=error_text(error), seconds=wait, reason=_reason(error))
                listener.wait(wait)
                continue
            done += count
            if not count:
                listener.wait(max(0.005, pause()))
    return done


def _reason(error: BaseException) -> str:
    """What the one on call reads first."""
    if is_read_only(error):
        return "the database is read-only (for example during a failover); trying again"
    if is_full(error):
        return "the disk of the database is full; free space there; trying again"
    return "the database is unavailable; trying again" if is_outage(error) else "trying again"
