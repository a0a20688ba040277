"""The engine's entry point for django-q2: the resident claim loop, by the path that schedules and queued tasks name."""

from __future__ import annotations

from projection.execution.stuck_threads import leave_if_stuck
from projection.execution.worker import claim_loop
from projection.runtime.django_q.resident_tasks import resident_task, unless_away


def claim(number: int) -> int:
    """Resident claim loop of slot `number`; returns at once when the slot is taken. A process with a stuck flow leaves afterwards."""
    done = unless_away(lambda: resident_task("claim", number, claim_loop, "projection.tasks.claim"), 0)
    leave_if_stuck()
    return done
