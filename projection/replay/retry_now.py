"""Retry now: an operator ends the wait of an item that waits to retry. One compare-and-swap, a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable

from projection.database.catalogue import execute
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.runtime.wake_up import notify


def retry_now(work_id: str, *, actor: str, note: Callable[[bool], object] | None = None) -> bool:
    """Make a waiting retry due at once; False when it does not wait (not `retry`, or due already). Attempts and lane stay as they are.

    `note` as in `run_unit`; it is not called for a name that no work can have.
    """
    if not work_id.isascii():
        return False
    moved = run_unit("retry_now", lambda: execute("retry_work_item_now", work_id=work_id) == 1, note=note)
    if moved:
        log_event("retry_now", work_id=work_id, actor=actor)
        notify("claim")
    return moved
