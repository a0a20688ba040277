"""Entry points of django-q2: the resident router, which also does the steps of bulk jobs, and the upkeep."""

from __future__ import annotations

from connectors.operations.bulk_jobs import JobRunner
from connectors.retention.maintenance import prune_if_due
from connectors.routing.router import namespaces_with_pending, route_batch
from projection.execution.heartbeat import Heartbeat
from projection.runtime.django_q.resident_tasks import resident_task, unless_away
from projection.runtime.loop import POLL_SECONDS, resident
from projection.runtime.stop_flag import Stop, never

ROUTERS = 1
CLAIM_WORKERS = 2
SCHEDULES: dict[str, tuple[str, int]] = {
    **{f"headrace-route-{number}": ("connectors.tasks.route", number) for number in range(1, ROUTERS + 1)},
    **{f"headrace-claim-{number}": ("projection.tasks.claim", number) for number in range(1, CLAIM_WORKERS + 1)},
    "headrace-upkeep-1": ("connectors.tasks.upkeep", 1),
    "headrace-watch-1": ("ops_ui.watch.task", 1),
}
"""Resident loops of a host: one router (a namespace admits one batch at a time anyway) and two claim workers. The upkeep is asked for
each minute, and does something once an hour. The watch (of ops_ui, by its name alone) looks where no web server does."""


def route_loop(*, budget_seconds: float | None = None, batch: int | None = None, stop: Stop = never) -> int:
    """Route until the budget is over or `stop()`; woken by datagrams, else polling. Number of receipts looked at and job steps done.

    Receipts and job steps take turns, because both lock the namespace: neither keeps the other waiting for more than its turn.
    """
    runner = JobRunner()

    def step() -> int:
        """One batch of each namespace, so that a busy tenant never keeps another one waiting, then one step of a job."""
        return sum(route_batch(name, batch).seen for name in namespaces_with_pending()) + runner.step()

    def pause() -> float:
        return POLL_SECONDS if runner.next_due is None else min(POLL_SECONDS, max(0.0, runner.next_due))

    with Heartbeat("router"):
        return resident("route", step, pause, budget_seconds, stop)


def route(number: int) -> int:
    """Resident router of slot `number`; returns at once when the slot is taken."""
    return unless_away(lambda: resident_task("route", number, route_loop, "connectors.tasks.route"), 0)


def upkeep(_number: int) -> bool:
    """What the installation does by itself once in a while; returns at once when nothing is due. Whether anything was tried."""
    return unless_away(prune_if_due, otherwise=False)
