"""Entry points of django-q2 for the router and the upkeep."""

from __future__ import annotations

from connectors.retention.maintenance import prune_if_due
from connectors.routing.loop import route_loop
from projection.tasks import resident_task, unless_away

ROUTERS = 1
CLAIM_WORKERS = 2
SCHEDULES: dict[str, tuple[str, int]] = {
    **{f"headrace-route-{number}": ("connectors.tasks.route", number) for number in range(1, ROUTERS + 1)},
    **{f"headrace-claim-{number}": ("projection.tasks.claim", number) for number in range(1, CLAIM_WORKERS + 1)},
    "headrace-upkeep-1": ("connectors.tasks.upkeep", 1),
    "headrace-watch-1": ("ops_ui.watch.task", 1),
}
"""Resident loops of a host: one router (a namespace admits one batch at a time anyway) and two claim workers. The upkeep is asked for
each minute, and does something once an hour. The watch (of the room above, by its name alone) looks where no web server does."""


def route(number: int) -> int:
    """Resident router of slot `number`; returns at once when the slot is taken."""
    return unless_away(lambda: resident_task("route", number, route_loop, "connectors.tasks.route"), 0)


def upkeep(_number: int) -> bool:
    """What the installation does by itself once in a while; returns at once when nothing is due. Whether anything was tried."""
    return unless_away(prune_if_due, otherwise=False)
