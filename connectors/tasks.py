"""Entry points of django-q2 for the router."""

from __future__ import annotations

from connectors.routing_loop import route_loop
from projection.tasks import resident_task

ROUTERS = 1
CLAIM_WORKERS = 2
SCHEDULES: dict[str, tuple[str, int]] = {
    **{f"headrace-route-{number}": ("connectors.tasks.route", number) for number in range(1, ROUTERS + 1)},
    **{f"headrace-claim-{number}": ("projection.tasks.claim", number) for number in range(1, CLAIM_WORKERS + 1)},
}
"""Resident loops of a host: one router (a namespace admits one batch at a time anyway) and two claim workers."""


def route(number: int) -> int:
    """Resident router of slot `number`; returns at once when the slot is taken."""
    return resident_task("route", number, route_loop, "connectors.tasks.route")
