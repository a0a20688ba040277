"""However many clusters of however many hosts there are, a schedule runs once for each time at which it is due.

django-q2's scheduler decides under a lock on the schedule's row; the tests force three of them to come at once, and see two of them wait.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import OperationalError, connection
from django.db.models import F
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.signing import SignedPackage

from connectors.models import Upkeep
from connectors.retention.maintenance import Done, run_if_due
from connectors.tasks import SCHEDULES
from projection.execution.worker import Stop
from projection.runtime.django_q import cluster_stop, resident_tasks
from projection.runtime.django_q.kill_proof import Flag
from projection.runtime.django_q.queue_clock import scheduler
from tests.support.gates import COMMIT, Gate, at_each_statement, stopped_at
from tests.support.lock_waits import own_connection_id
from tests.support.rivals import PATIENCE_SECONDS, Rival

pytestmark = pytest.mark.usefixtures("database")

CLUSTERS = 3
SLOTS = 10
MINUTE, GAP = timedelta(minutes=1), timedelta(hours=4)
PERIOD_SECONDS = 60


@pytest.fixture(autouse=True)
def no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_stop, "_stops", Flag())


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread is a host of its own."""
    monkeypatch.setattr("projection.runtime.slots.socket.gethostname", lambda: threading.current_thread().name)


def queued() -> Counter[tuple[str, int]]:
    """How often each task waits in the queue: (path, slot)."""
    found = [SignedPackage.loads(payload) for payload in OrmQ.objects.values_list("payload", flat=True)]
    return Counter((task["func"], *task["args"]) for task in found)


def times(count: int) -> Counter[tuple[str, int]]:
    """Each task of the plan so many times."""
    return Counter(dict.fromkeys(SCHEDULES.values(), count))


def later(by: timedelta) -> None:
    """Time passes."""
    Schedule.objects.update(next_run=F("next_run") - by)


def schedulers_at_once() -> None:
    """Three clusters look; the first has made its tasks and not committed when the others come, and both wait for it."""
    with stopped_at(Gate(COMMIT), scheduler) as first:
        others = [Rival(scheduler) for _ in range(CLUSTERS - 1)]
        for other in others:
            other.waits()
    for each in (first, *others):
        each.result()


def test_three_clusters_run_each_schedule_once_a_slot() -> None:
    resident_tasks.ensure_schedules(SCHEDULES)
    for slot in range(1, SLOTS + 1):
        later(MINUTE)
        schedulers_at_once()
        assert queued() == times(slot)
    assert not Schedule.objects.filter(next_run__lte=timezone.now()).exists()


def test_after_a_gap_of_hours_each_schedule_runs_once() -> None:
    resident_tasks.ensure_schedules(SCHEDULES)
    later(GAP)
    schedulers_at_once()
    assert queued() == times(1)
    scheduler()
    assert queued() == times(1)
    due = Schedule.objects.values_list("next_run", flat=True)
    assert all(timezone.now() < moment <= timezone.now() + MINUTE for moment in due)


def test_a_scheduler_that_dies_before_its_commit_has_run_nothing() -> None:
    resident_tasks.ensure_schedules(SCHEDULES)
    later(MINUTE)

    def die() -> None:
        with at_each_statement(lambda sql: connection.connection.close() if sql == COMMIT else None):
            scheduler()  # it logs its own errors

    Rival(die).result()
    assert queued() == Counter()
    scheduler()
    assert queued() == times(1)


def setups_at_once(count: int) -> None:
    """So many clusters of as many hosts start at the same moment: each has seen that there are no schedules before any makes one."""
    together = threading.Barrier(count)
    inserting = threading.Barrier(count)

    def meet(sql: str) -> None:
        if sql.startswith("INSERT INTO `django_q_schedule`") and not inserting.broken:
            try:
                inserting.wait(1.0)  # all of them would come here at once, if nothing kept them from it
            except threading.BrokenBarrierError:
                return

    def set_up() -> None:
        together.wait(PATIENCE_SECONDS)
        with at_each_statement(meet):
            resident_tasks.ensure_schedules(SCHEDULES)

    for each in [Rival(set_up) for _ in range(count)]:
        each.result()


def rows() -> Counter[str]:
    return Counter(Schedule.objects.values_list("name", flat=True))


def test_setup_twice_and_in_parallel_on_several_hosts_makes_one_row(hosts: None) -> None:
    for _ in range(2):
        setups_at_once(CLUSTERS)
        assert rows() == Counter(list(SCHEDULES))


def test_a_second_row_of_an_older_version_goes_at_the_next_start() -> None:
    resident_tasks.ensure_schedules(SCHEDULES)
    kept = set(Schedule.objects.values_list("id", flat=True))
    for name, (path, number) in SCHEDULES.items():
        Schedule.objects.create(name=name, func=path, args=str(number), schedule_type=Schedule.MINUTES, minutes=1)
    theirs = Schedule.objects.create(name="a schedule of the user's own", func="acme.tasks.nightly", schedule_type=Schedule.DAILY)
    resident_tasks.ensure_schedules(SCHEDULES)
    assert set(Schedule.objects.values_list("id", flat=True)) == kept | {theirs.id}


class Sweep:
    """A long run of the upkeep; it stands still until `go_on`."""

    def __init__(self) -> None:
        self.runs = 0
        self.connection_id = 0
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, _stop: Stop) -> Done:
        self.runs += 1
        self.connection_id = own_connection_id()
        self.begun.set()
        assert self.go_on.wait(PATIENCE_SECONDS)
        return Done({}, finished=True)


def begin(sweep: Sweep) -> Rival[bool]:
    rival = Rival(partial(run_if_due, "sweep", PERIOD_SECONDS, sweep))
    assert sweep.begun.wait(PATIENCE_SECONDS)
    return rival


def ask(act: Callable[[Stop], Done]) -> bool:
    return Rival(partial(run_if_due, "sweep", PERIOD_SECONDS, act)).result()


def test_a_sweep_longer_than_its_period_meets_no_second_one(hosts: None) -> None:
    sweep = Sweep()
    rival = begin(sweep)
    Upkeep.objects.update(started_at=F("started_at") - GAP)
    assert [ask(sweep) for _ in range(CLUSTERS)] == [False] * CLUSTERS
    sweep.go_on.set()
    assert rival.result()
    assert sweep.runs == 1


def test_a_killed_sweep_does_not_block_the_next(hosts: None) -> None:
    killed, next_one = Sweep(), Sweep()
    next_one.go_on.set()
    rival = begin(killed)
    with connection.cursor() as cursor:
        cursor.execute(f"KILL {killed.connection_id}")  # the server sees the end of a killed process as it sees this
    assert ask(next_one)
    killed.go_on.set()
    with pytest.raises(OperationalError):
        rival.result()
    assert (killed.runs, next_one.runs) == (1, 1)
