"""django-q2's cluster with the loops of this installation: `manage.py qcluster`."""

from __future__ import annotations

from typing import Any

from django_q.management.commands.qcluster import Command as ClusterCommand

from connectors.tasks import SCHEDULES
from projection.runtime.django_q.cluster import run_cluster


class Command(ClusterCommand):  # type: ignore[misc]  # django-q2 has no types
    help = "Starts the django-q2 cluster with the resident router and workers."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  # Django's signature
        run_cluster(SCHEDULES, once=bool(options.get("run_once", False)))
