"""Resident loops as tasks of django-q2: one schedule row each, and one task that hands over to a fresh one; never a row per event or
wake-up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django_q.models import Schedule
from django_q.tasks import async_task

from projection.database import clock
from projection.database.outages import is_outage
from projection.logs import log_event
from projection.runtime.django_q import own_tasks
from projection.runtime.django_q.cluster_stop import StopFlag
from projection.runtime.slots import slot
from projection.safe_text import error_text

T = TypeVar("T")


def unless_away(act: Callable[[], T], otherwise: T) -> T:
    """What `act` returns; `otherwise`, after one line instead of django-q2's traceback, when the database went away meanwhile.

    The schedule asks again within a minute.
    """
    try:
        return act()
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
        log_event("task", level="error", reason="the database is unavailable; the schedule tries again", error=error_text(error))
        return otherwise


def resident_task(kind: str, number: int, loop: Callable[..., int], path: str) -> int:
    """Run `loop` for the resident budget, then hand over to a fresh task. Number of things done."""
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
    They are what may run as a task from now on (`own_tasks`).
    One that is further off than its minute is due now: it was put there by a clock that was wrong.
    """
    own_tasks.allow(plan)
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
