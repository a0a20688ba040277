"""django-q2's cluster, told to stop its resident loops, and made so that any of its processes may be killed (`manage.py qcluster`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Process
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connections
from django_q import cluster as django_q_cluster
from django_q import monitor as django_q_monitor
from django_q.cluster import Cluster, Sentinel, worker
from django_q.monitor import monitor
from django_q.tasks import async_task

from projection.logs import log_event
from projection.runtime.django_q import cluster_stop, own_tasks
from projection.runtime.django_q.kill_proof import Flag, PacketQueue, Timer
from projection.runtime.django_q.queue_clock import scheduler
from projection.runtime.django_q.resident_tasks import ensure_schedules
from projection.safe_text import error_text

_loops: Final[dict[str, tuple[str, int]]] = {}
"""Name → (task path, slot) of the resident loops; all processes of the cluster are forked after it was filled."""


def start_loops() -> None:
    """Start every resident loop at once, instead of at the schedule's next minute; one whose slot is taken returns by itself."""
    for path, number in _loops.values():
        async_task(path, number, task_name=f"{path}-{number}")


def start_loops_if_possible(reason: str) -> None:
    """As `start_loops`; while the database is away, only the line of log that gives `reason`."""
    try:
        start_loops()
    except (DatabaseError, InterfaceError) as error:
        connections.close_all()
        log_event("queue", level="warning", error=error_text(error), reason=reason)


def in_one_line(run: Callable[..., object], *arguments: Any) -> None:
    """A process of the cluster that ends with its database says so in one line; the guard starts it again."""
    try:
        run(*arguments)
    except (DatabaseError, InterfaceError) as error:
        log_event("queue", level="warning", error=error_text(error), reason=f"the {run.__name__} exits and starts again")


class OutlastingSentinel(Sentinel):  # type: ignore[misc]  # django-q2 has no types
    """A Sentinel that, with the processes it forks, outlasts a SIGTERM to the whole group: its head tells it when to stop.

    Any of its processes may be killed at any moment. What they share is made for that, and a loop that went with one starts again at once.
    """

    def start(self) -> None:
        cluster_stop.outlast_group_signal()
        guard = os.getpid()
        self.task_queue = own_tasks.OwnTasks(small=True, is_abandoned=lambda: self._is_abandoned(guard, self.pool))
        self.result_queue = PacketQueue(is_abandoned=lambda: self._is_abandoned(guard, [self.monitor]))
        self.event_out = Flag()
        super().start()

    def _is_abandoned(self, guard: int, readers: Sequence[Process]) -> bool:
        """Whether the cluster stops and nobody is left to read a queue; only the guard sees its readers. For the others it is enough that
        the cluster stops: their tasks come again, and no result is kept.
        """
        return cluster_stop.is_stopping() and not (os.getpid() == guard and any(one.is_alive() for one in readers))

    def spawn_worker(self) -> None:
        self.spawn_process(worker, self.task_queue, self.result_queue, Timer(), self.timeout)

    def spawn_monitor(self) -> Process:
        made: Process = self.spawn_process(in_one_line, monitor, self.result_queue, self.broker)
        return made

    def reincarnate(self, process: Any) -> None:
        super().reincarnate(process)
        start_loops_if_possible("a process of the cluster ended unexpectedly; its loop starts again later")


class StoppingCluster(Cluster):  # type: ignore[misc]  # django-q2 has no types
    """A cluster that raises the loops' stop flag before it waits for them, then leaves their slots to any other cluster."""

    _is_stopping = False

    def stop(self) -> bool:
        if self._is_stopping:  # a second signal, in the middle of the first one's work
            return False
        self._is_stopping = True
        cluster_stop.stop_all()
        stopped = bool(super().stop())
        if stopped:
            start_loops_if_possible("the loops were not passed to the new process")
        return stopped


def run_cluster(loops: Mapping[str, tuple[str, int]], *, once: bool = False) -> None:
    """Start the cluster with these resident loops (name → (task path, slot)) and wait for its end; `once`: end when nothing is due."""
    # Cluster.start() and its Sentinel find these by their names, and offer no other way.
    django_q_cluster.Sentinel, django_q_cluster.scheduler = OutlastingSentinel, scheduler
    django_q_monitor.save_task = own_tasks.keep_no_result
    _loops.update(loops)
    ensure_schedules(_loops)
    start_loops()
    connections.close_all()  # the forks must not share this process's socket
    cluster = StoppingCluster()
    cluster.start()
    if once:
        cluster.stop()
