"""django-q2's queue and schedules by the database's clock (named in the settings and in `qcluster`).

django-q2 compares times across hosts that each host has by its own clock. What a host that is an hour ahead put into the queue, and each
schedule that it ran, would then be due for all others an hour later; and it would run again what others run.
"""

from __future__ import annotations

from datetime import timedelta
from time import sleep
from typing import Any, Final

from django.db.models import DateTimeField, Func
from django_q import scheduler as django_q_scheduler
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from projection.database import clock
from projection.runtime.django_q import own_tasks

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


def scheduler(broker: Any = None) -> None:
    """Put the loops that are due by the schedules into the queue, as django-q2's own does. Two more statements than that."""
    # It asks `timezone.now` once, for what is due, and `localtime` for each run that was missed.
    django_q_scheduler.timezone, django_q_scheduler.localtime = clock, clock.lately
    django_q_scheduler.async_task = own_tasks.enqueue
    own_tasks.disable_foreign_schedules()
    django_q_scheduler.scheduler(broker=broker)
