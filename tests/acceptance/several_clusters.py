"""Several clusters on one database, each with a state folder of its own, as hosts have; and how a test sees that they wait for a lock."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from time import monotonic, sleep

import pytest

from tests.acceptance.service import PATIENCE_SECONDS, Process, Service
from tests.support.lock_waits import LOOK_SECONDS
from tests.support.running import CHECKOUT

PROCESSES = 8
"""Of a cluster: head, sentinel, four workers, monitor, pusher."""
WORKERS = 4
RESIDENT = 3
"""Tasks that run all the time: of the loops, each once however many clusters there are on a host."""

needs_a_lock_wait_table = pytest.mark.skipif(
    os.environ.get("HEADRACE_DATABASE_URL", "").startswith("tidb"), reason="the lock waits are read from InnoDB's table"
)


def start_clusters(site: Service, count: int) -> list[Process]:
    """All at the same moment; returns once each is whole and only the tasks of the running loops are left."""
    since = site.now()
    place = len(site.processes)
    folders = [site.folder / f"host-{place + number}" for number in range(count)]
    clusters = [site.start_cluster(HEADRACE_STATE_DIR=str(folder)) for folder in folders]
    site.until(lambda: all(len(cluster.group()) == PROCESSES for cluster in clusters), "each cluster is up")
    site.until_loops_run(since)
    until_the_queue_is_empty(site)
    return clusters


def until_the_queue_is_empty(site: Service) -> None:
    """Nobody has a task but the loops."""
    site.until(lambda: site.fetch("SELECT COUNT(*) FROM `django_q_ormq`") == [(RESIDENT,)], "only the tasks of the loops are left")


class Tasks:
    """Puts a task into the queue, as often as is asked, for whichever cluster comes first."""

    def __init__(self, site: Service, path: str) -> None:
        """The signed package comes from the product's own queue, in a transaction that is rolled back."""
        code = f"""if True:
            from django.db import transaction
            from django_q.models import OrmQ
            from django_q.tasks import async_task
            with transaction.atomic():
                async_task({path!r}, 1)
                row = OrmQ.objects.latest("id")
                print(row.key, row.payload)
                transaction.set_rollback(True)
        """
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=site.environment, check=True, capture_output=True, text=True, timeout=2 * PATIENCE_SECONDS
        )
        self._key, self._payload = done.stdout.split()
        self._site = site

    def put(self, times: int) -> None:
        row = "(%s, %s, UTC_TIMESTAMP() - INTERVAL 1 SECOND)"
        values = [self._key, self._payload] * times
        self._site.fetch(f"INSERT INTO django_q_ormq (`key`, payload, `lock`) VALUES {', '.join([row] * times)}", *values)


def until_waiting(site: Service, statement: str, count: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """So many transactions wait for a lock with a statement that is LIKE this. `meanwhile` is done again and again between two looks."""
    sql = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE %s"
    deadline = monotonic() + 2 * PATIENCE_SECONDS
    while (found := site.fetch(sql, statement)[0][0]) < count:
        assert monotonic() < deadline, f"{found} of {count} wait with {statement}"
        next_look = monotonic() + random.uniform(*LOOK_SECONDS)
        while monotonic() < next_look:
            meanwhile()
            sleep(0.01)  # nothing announces a lock wait
