"""A writer of the database gets nothing run: neither by a schedule, nor by a queued task, nor by a result that is read back."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django_q.brokers import get_broker
from django_q.models import OrmQ, Schedule, Task
from django_q.signing import SignedPackage

from connectors.tasks import SCHEDULES
from projection.database import clock
from projection.runtime.django_q import own_tasks
from projection.runtime.django_q.own_tasks import OwnTasks
from projection.runtime.django_q.queue_clock import scheduler

pytestmark = pytest.mark.usefixtures("database")

FOREIGN: list[tuple[str, str, str | None]] = [
    ("os.system", "'true'", None),
    ("connectors.tasks.route", "'1; x'", None),
    ("connectors.tasks.route", "99", None),
    ("connectors.tasks.route", "1, 2", None),
    ("projection.models.WorkItem.objects.all", "", None),
    ("os.system", "'true'", "{'q_options': {'sync': True}}"),
    ("os.system", "'true'", "{'sync': True}"),
]


@pytest.fixture(autouse=True)
def loops() -> Iterator[None]:
    own_tasks.allow(SCHEDULES)
    yield
    own_tasks._own.clear()


@pytest.fixture
def queue() -> Iterator[OwnTasks]:
    made = OwnTasks(small=True)
    yield made
    made._reader.close()
    made._writer.close()


def due(func: str, args: str, kwargs: str | None = None, **more: Any) -> Schedule:
    made: Schedule = Schedule.objects.create(
        func=func, args=args, kwargs=kwargs, schedule_type=Schedule.MINUTES, minutes=1, repeats=-1, next_run=clock.now(), **more
    )
    return made


def queued() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    tasks = [SignedPackage.loads(row.payload) for row in OrmQ.objects.order_by("id")]
    return [(task["func"], task["args"], task["kwargs"]) for task in tasks]


@pytest.mark.parametrize(("func", "args", "kwargs"), FOREIGN)
def test_a_schedule_that_is_no_loop_of_ours_does_not_run_and_is_named(
    func: str, args: str, kwargs: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "system", lambda _command: pytest.fail("it ran"))
    due(func, args, kwargs)
    due("connectors.tasks.upkeep", "1")
    scheduler(get_broker())
    assert queued() == [("connectors.tasks.upkeep", (1,), {})]
    said = capsys.readouterr().err
    assert func in said
    assert "not a task of Headrace" in said


def test_a_foreign_schedule_is_named_once_and_left_as_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    row = due("os.system", "'true'")
    scheduler(get_broker())
    capsys.readouterr()
    scheduler(get_broker())
    assert "os.system" not in capsys.readouterr().err
    row.refresh_from_db()
    assert (row.func, row.repeats) == ("os.system", 0)


def test_options_that_a_row_adds_to_a_loop_are_not_used() -> None:
    due(
        "connectors.tasks.upkeep",
        "1",
        "{'q_options': {'sync': True, 'hook': 'os.abort', 'chain': [('os.abort', (), {})]}}",
        hook="os.abort",
    )
    scheduler(get_broker())
    (task,) = [SignedPackage.loads(row.payload) for row in OrmQ.objects.all()]
    assert task["func"] == "connectors.tasks.upkeep"
    assert not {"hook", "chain", "sync"} & task.keys()


@pytest.mark.parametrize("func", ["os.system", os.system, "connectors.tasks.route"])
def test_a_queued_task_that_is_no_loop_of_ours_never_reaches_a_worker(
    func: Any, queue: OwnTasks, capsys: pytest.CaptureFixture[str]
) -> None:
    ack_id = get_broker().enqueue("x")
    queue.put({"id": "1", "name": "x", "func": func, "args": ("true",), "kwargs": {}, "ack_id": ack_id})
    assert queue.empty()
    assert not OrmQ.objects.exists()
    assert "not a task of Headrace" in capsys.readouterr().err


def test_a_loop_and_the_end_of_a_worker_pass(queue: OwnTasks) -> None:
    task = {"id": "1", "name": "x", "func": "projection.tasks.claim", "args": (2,), "kwargs": {}, "ack_id": 1}
    queue.put(task)
    queue.put("STOP")
    assert (queue.get(), queue.get()) == (task, "STOP")


class Trap:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_no_page_reads_a_pickled_value(tmp_path: Path, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert not [model for model in admin.site._registry if model._meta.app_label == "django_q"]
    trap = tmp_path / "sprung"
    moment = clock.now()
    Task.objects.create(id="f" * 32, name="f", func="x", started=moment, stopped=moment, success=False, result=b"")
    Task.objects.filter(id="f" * 32).update(result=pickle.dumps(Trap(trap)))
    for path in ("task", "failure", "success", "schedule", "ormq"):
        for page in (f"/admin/django_q/{path}/", f"/admin/django_q/{path}/{'f' * 32}/change/"):
            assert client.get(page).status_code == 404
    assert not trap.exists()
