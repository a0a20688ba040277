"""What `Q_CLUSTER` in Django's settings says, and why: the cluster carries a handful of long tasks, not many short ones."""

from __future__ import annotations

from typing import Any, Final

HAND_OVER_SECONDS: Final = 60
"""For a loop to end after its last flow and to queue its successor."""
RETRY_SLACK_SECONDS: Final = 120
"""How much longer than its timeout a task stays taken, so that one that is being ended is not started a second time."""


def cluster_settings(resident_seconds: int, longest_flow_seconds: int) -> dict[str, Any]:
    """`Q_CLUSTER` for loops that run for `resident_seconds` and then finish a flow of at most `longest_flow_seconds`.

    Checks `headrace.E005` and `headrace.E006` hold the two times at the start.
    """
    timeout = resident_seconds + longest_flow_seconds + HAND_OVER_SECONDS
    return {
        "name": "headrace",
        "orm": "default",
        "broker_class": "projection.runtime.django_q.queue_clock.Queue",  # uses the database's clock
        "workers": 4,  # the router, two claim loops, and one for maintenance and the watch
        "poll": 2,  # seconds; what must be quick is woken by a datagram and never waits for this queue
        "save_limit": -1,  # keep no result: a row for each hand-over helps nobody
        "catch_up": False,  # a minute that was missed is over
        "ack_failures": True,  # a loop that failed starts again by its schedule, not by a second delivery of its task,
        "max_attempts": 1,  # nor by a third
        "timeout": timeout,
        "retry": timeout + RETRY_SLACK_SECONDS,
        "guard_cycle": 1,  # seconds until a process that died is noticed
    }
