"""django-q2's queue and schedules by the database's clock (named in the settings and in `qcluster`).

django-q2 compares times across hosts that each host has by its own clock. What a host that is an hour ahead put into the queue, and each
schedule that it ran, would then be due for all others an hour later; and it would run again what others run.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic, sleep
from typing import Any, Final

from django.db.models import DateTimeField, Func
from django_q import scheduler as django_q_scheduler
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from projection import clock

NOW: Final = Func(function="UTC_TIMESTAMP", template="%(function)s(6)", output_field=DateTimeField())


class Queue(ORM):  # type: ignore[misc]  # django-q2 has no types
    """The table `django_q_ormq`: a task is due once its `lock` is over, and whoever takes it moves that on by the cluster's `retry`."""

    def queue_size(self) -> int:
        """Tasks that are due."""
        return int(self.get_connection().filter(key=self.list_key, lock__lte=NOW).count())

    def lock_size(self) -> int:
        """Tasks that somebody has."""
        return int(self.get_connection().filter(key=self.list_key, lock__gt=NOW).count())

    def enqueue(self, task: str) -> int:
        """Put a signed task in; its row's id."""
        return int(self.get_connection().create(key=self.list_key or Conf.CLUSTER_NAME, payload=task, lock=NOW).pk)

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take what is due; None, after a pause, when nothing is. One that another cluster took in between is left out."""
        due = list(self.get_connection().filter(key=self.list_key, lock__lt=NOW)[: Conf.BULK])
        if not due:
            sleep(Conf.POLL)
            return None
        until = NOW + timedelta(seconds=Conf.RETRY)
        return [
            (task.pk, task.payload) for task in due if self.get_connection().filter(id=task.id, lock=task.lock).update(lock=until)
        ]


class _Time:
    """The database's time from the first question on, which alone asks it."""

    def __init__(self) -> None:
        self._first: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        if self._first is None:
            self._first = clock.now(), monotonic()
        asked, at = self._first
        return (asked + timedelta(seconds=monotonic() - at)).astimezone(UTC)


def scheduler(broker: Any = None) -> None:
    """Put what is due by the schedules into the queue, as django-q2's own does. One more statement than that."""
    time = _Time()
    django_q_scheduler.timezone, django_q_scheduler.localtime = time, time.now
    django_q_scheduler.scheduler(broker=broker)
