"""The router as a loop: routes whatever is pending, namespace after namespace, until told to stop; between, steps of bulk jobs.

Both lock the namespace, so they would wait for each other anyway; here neither keeps the other waiting for more than its turn.
"""

from __future__ import annotations

from connectors.operations.bulk_jobs import JobRunner
from connectors.routing.router import namespaces_with_pending, route_batch
from projection.execution.heartbeat import Heartbeat
from projection.runtime.loop import POLL_SECONDS, resident
from projection.runtime.stop_flag import Stop, never


def route_loop(*, budget_seconds: float | None = None, batch: int | None = None, stop: Stop = never) -> int:
    """Route until the budget is over or `stop()`; woken by datagrams, else polling. Number of receipts looked at and job steps done."""
    runner = JobRunner()

    def step() -> int:
        """One batch of each namespace, so that a busy tenant never keeps another one waiting, then one step of a job."""
        return sum(route_batch(name, batch).seen for name in namespaces_with_pending()) + runner.step()

    def pause() -> float:
        return POLL_SECONDS if runner.next_due is None else min(POLL_SECONDS, max(0.0, runner.next_due))

    with Heartbeat("router"):
        return resident("route", step, pause, budget_seconds, stop)
