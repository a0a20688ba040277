"""The router as a loop: routes whatever is pending, namespace after namespace, until told to stop."""

from __future__ import annotations

from connectors.router import namespaces_with_pending, route_batch
from projection.heartbeat import Heartbeat
from projection.worker import POLL_SECONDS, Stop, never, resident


def route_loop(*, budget_seconds: float | None = None, batch: int | None = None, stop: Stop = never) -> int:
    """Route until the budget is over or `stop()`; woken by datagrams, else polling. Number of receipts looked at."""

    def step() -> int:
        """One batch of each namespace, so that a busy tenant never keeps another one waiting."""
        return sum(route_batch(name, batch).seen for name in namespaces_with_pending())

    with Heartbeat("router"):
        return resident("route", step, lambda: POLL_SECONDS, budget_seconds, stop)
