"""Entry points of django-q2: resident loops, one row each; never a row per event or wake-up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings

from projection import clock
from projection.slots import slot
from projection.stopping import StopFlag
from projection.stuck import leave_if_stuck
from projection.worker import claim_loop


def claim(number: int) -> int:
    """Resident claim loop of slot `number`; returns at once when the slot is taken. A process with a stuck flow leaves afterwards."""
    done = resident_task("claim", number, claim_loop, "projection.tasks.claim")
    leave_if_stuck()
    return done


def resident_task(kind: str, number: int, loop: Callable[..., int], path: str) -> int:
    """Run `loop` for the resident budget, then hand over to a fresh task. Number of things done."""
    from django_q.tasks import async_task  # here: importing it connects the broker

    stop = StopFlag()
    with slot(kind, number) as held:
        if held is None:
            return 0
        done = loop(budget_seconds=settings.RESIDENT_BUDGET_SECONDS, stop=lambda: stop() or not held.keep())
    if not stop():
        async_task(path, number, task_name=f"{kind}-{number}")
    return done


def ensure_schedules(plan: dict[str, tuple[str, int]]) -> None:
    """One schedule row for each resident loop, made once: name → (task path, slot). They restart a loop that ended badly.

    By one cluster of the installation at a time, whatever its host: django-q2 lets two rows have one name, and each would run.
    One that is further off than its minute is due now: it was put there by a clock that was wrong.
    """
    from django_q.models import Schedule

    with slot("schedules", 0, everywhere=True) as held:
        now = clock.now()
        for name, (path, number) in plan.items() if held else ():
            wanted: dict[str, Any] = {
                "func": path,
                "args": str(number),
                "schedule_type": Schedule.MINUTES,
                "minutes": 1,
                "repeats": -1,
            }
            ids = list(Schedule.objects.filter(name=name).order_by("id").values_list("id", flat=True))
            if not ids:
                Schedule.objects.create(name=name, next_run=now, **wanted)
                continue
            Schedule.objects.filter(id__in=ids[1:]).delete()
            Schedule.objects.filter(id=ids[0]).update(**wanted)
            Schedule.objects.filter(id=ids[0], next_run__gt=now + timedelta(minutes=1)).update(next_run=now)
