"""django-q2's cluster, told to stop its resident loops: `manage.py qcluster`."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django_q.cluster import Cluster
from django_q.management.commands.qcluster import Command as ClusterCommand
from django_q.tasks import async_task

from connectors.tasks import SCHEDULES
from projection import stopping
from projection.tasks import ensure_schedules


class StoppingCluster(Cluster):  # type: ignore[misc]  # django-q2 has no types
    """A cluster that raises the loops' stop flag before it waits for them."""

    def stop(self) -> bool:
        stopping.stop_all()
        return bool(super().stop())


class Command(ClusterCommand):  # type: ignore[misc]  # django-q2 has no types
    help = "Starts the django-q2 cluster with the resident router and claim workers."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  # Django's signature
        stopping.prepare()
        for path, number in ensure_schedules(SCHEDULES):
            async_task(path, number, task_name=f"{path}-{number}")
        connections.close_all()  # the forks must not share this process's socket
        cluster = StoppingCluster()
        cluster.start()
        if options.get("run_once", False):
            cluster.stop()
