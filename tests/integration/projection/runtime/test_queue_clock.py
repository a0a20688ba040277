"""django-q2's queue and schedules go by the database's clock, however far off the clocks of its hosts are.

A task that runs for longer than the cluster's `retry` is handed out again; nothing that it does is done twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any
from unittest import mock

import pytest
from django.db.models import F
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule

from connectors.tasks import SCHEDULES
from projection import tasks
from projection.database import clock
from projection.flows import Generation
from projection.models import WorkItem
from projection.runtime.django_q import cluster_stop, resident_tasks
from projection.runtime.django_q.kill_proof import Flag
from projection.runtime.django_q.queue_clock import Queue, scheduler
from tests.support.deliveries import change, open_ingress, states
from tests.support.flows_of_tests import recording
from tests.support.rivals import PATIENCE_SECONDS, Rival

pytestmark = pytest.mark.usefixtures("database")

HOURS = timedelta(hours=5)
BEHIND, RIGHT, AHEAD = -HOURS, timedelta(), HOURS
MINUTE = timedelta(minutes=1)
_real_now = timezone.now


@contextmanager
def host(ahead: timedelta) -> Iterator[Queue]:
    """Inside, what django-q2 reads as this host's time is off."""

    def now() -> datetime:
        return _real_now() + ahead

    with mock.patch("django.utils.timezone.now", now), mock.patch.object(Conf, "POLL", 0):
        yield get_broker()


@pytest.mark.parametrize(("writer", "reader"), list(product((BEHIND, RIGHT, AHEAD), repeat=2)))
def test_what_any_host_puts_in_each_other_one_takes_out_at_once_and_only_one(writer: timedelta, reader: timedelta) -> None:
    with host(writer) as queue:
        queue.enqueue("signed")
    with host(reader) as queue:
        assert (queue.queue_size(), queue.lock_size()) == (1, 0)
        ((_, payload),) = queue.dequeue()
        assert payload == "signed"
    for ahead in (BEHIND, RIGHT, AHEAD):
        with host(ahead) as queue:
            assert (queue.queue_size(), queue.lock_size()) == (0, 1)
            assert queue.dequeue() is None, "it is out, until it is acknowledged or `retry` is over"
    left = OrmQ.objects.get().lock - clock.now()
    assert timedelta(seconds=Conf.RETRY) - MINUTE < left <= timedelta(seconds=Conf.RETRY)


def test_two_that_look_at_once_do_not_both_take_it() -> None:
    get_broker().enqueue("signed")
    rows = list(OrmQ.objects.all())
    assert get_broker().dequeue() is not None
    stale = mock.MagicMock(wraps=OrmQ.objects)
    stale.filter = lambda **of: rows if "lock__lt" in of else OrmQ.objects.filter(**of)
    with mock.patch.object(Queue, "get_connection", staticmethod(lambda *_: stale)):
        assert get_broker().dequeue() == []


@pytest.mark.parametrize("ahead", [BEHIND, AHEAD])
def test_a_schedule_is_due_each_minute_whichever_host_looks(ahead: timedelta) -> None:
    with host(ahead):
        resident_tasks.ensure_schedules(SCHEDULES)
        assert not Schedule.objects.exclude(next_run__range=(clock.now() - MINUTE, clock.now())).exists()
        scheduler()
        assert OrmQ.objects.count() == len(SCHEDULES)
    for other in (BEHIND, RIGHT, AHEAD):
        with host(other):
            scheduler()
        assert OrmQ.objects.count() == len(SCHEDULES), "the next minute has not come"
    assert not Schedule.objects.exclude(next_run__range=(clock.now(), clock.now() + MINUTE)).exists()
    Schedule.objects.update(next_run=F("next_run") - MINUTE)
    with host(-ahead):
        scheduler()
    assert OrmQ.objects.count() == 2 * len(SCHEDULES)


def test_a_schedule_that_a_wrong_clock_put_off_is_due_at_the_next_start() -> None:
    resident_tasks.ensure_schedules(SCHEDULES)
    Schedule.objects.update(next_run=F("next_run") + HOURS)
    resident_tasks.ensure_schedules(SCHEDULES)
    assert not Schedule.objects.filter(next_run__gt=clock.now()).exists()
    soon = clock.now() + timedelta(seconds=30)
    Schedule.objects.update(next_run=soon)
    resident_tasks.ensure_schedules(SCHEDULES)
    assert not Schedule.objects.exclude(next_run=soon).exists(), "what is near stays"


# ---- a task that runs for longer than `retry`


def delivered_again() -> int:
    """The row of the task that a process of a cluster is given once `retry` is over."""
    OrmQ.objects.update(lock=F("lock") - timedelta(seconds=Conf.RETRY))
    ((row_id, _),) = get_broker().dequeue()
    return int(row_id)


def test_a_task_delivered_three_times_while_its_flow_runs_starts_the_flow_once(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`retry` is shorter than the flow. The second process is one of the same host, the third one of another."""
    monkeypatch.setattr(cluster_stop, "_stops", Flag())
    monkeypatch.setattr("projection.runtime.slots.socket.gethostname", lambda: hosts.get(threading.get_ident(), "this host"))
    settings.RESIDENT_BUDGET_SECONDS = 0.2
    hosts: dict[int, str] = {}
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: Generation) -> None:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)

    def on_another_host() -> int:
        hosts[threading.get_ident()] = "another host"
        return tasks.claim(1)

    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(7))
    row_id = get_broker().enqueue("signed")
    with recording() as seen:
        seen.acts = [hold]
        assert delivered_again() == row_id
        first = Rival(partial(tasks.claim, 1))
        try:
            assert begun.wait(PATIENCE_SECONDS)
            assert delivered_again() == row_id
            assert Rival(partial(tasks.claim, 1)).result() == 0
            assert delivered_again() == row_id
            assert Rival(on_another_host).result() == 0
            assert states(7) == ["processing"]
        finally:
            go_on.set()
        assert first.result() == 1
    assert len(seen.runs) == 1
    item = WorkItem.objects.get()
    assert (item.state, item.attempts) == ("processed", 1)
