"""Only the loops of this installation run as tasks, whatever the tables of django-q2 say.

django-q2 runs any function that a schedule names, calls hooks, and reads pickled values back from its table of results. Whoever can write
into these tables could run code that way. Here a task is one of the loops with its number and nothing else, and no result is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django_q.brokers import get_broker
from django_q.models import Schedule
from django_q.tasks import async_task

from projection.logs import log_event
from projection.runtime.django_q.kill_proof import PacketQueue

STOP: Final = "STOP"
"""django-q2's message that ends a worker."""
_own: Final[set[tuple[str, int]]] = set()
"""Path and slot of each loop; the processes of the cluster are forked after it was filled."""


def allow(loops: Mapping[str, tuple[str, int]]) -> None:
    """These loops may run as tasks: name → (task path, slot)."""
    _own.update(loops.values())


def is_own(path: object, arguments: tuple[Any, ...]) -> bool:
    return len(arguments) == 1 and (path, arguments[0]) in _own


def disable_foreign_schedules() -> None:
    """A schedule that names anything else never runs. Its row is left, without runs to come, as evidence."""
    for row in Schedule.objects.exclude(repeats=0).exclude(func__in={path for path, _ in _own}):
        _refuse("schedule", row.func)
        Schedule.objects.filter(id=row.id).update(repeats=0)


def enqueue(path: str, *arguments: Any, **options: Any) -> str | None:
    """As django-q2's `async_task` for a due schedule; None for what is no loop. Hooks and other options of the row are not used."""
    if not is_own(path, arguments):
        _refuse("schedule", path)
        return None
    given = options.get("q_options", {})
    own = {name: given[name] for name in ("broker", "group") if name in given}
    made: str = async_task(path, *arguments, q_options=own)
    return made


class OwnTasks(PacketQueue):
    """The queue of a cluster's workers: it takes loops only. Anything else is removed from the table and named in the log."""

    def put(self, message: Any) -> None:
        if message == STOP or (is_own(message["func"], message["args"]) and not message["kwargs"]):
            super().put(message)
            return
        _refuse("queue", message["func"])
        get_broker().acknowledge(message["ack_id"])


def keep_no_result(_task: Mapping[str, Any], _broker: object) -> None:
    """Instead of django-q2's `save_task`: a failure is in the log, and an earlier result would be unpickled from its table."""


def _refuse(where: str, path: object) -> None:
    reason = "it is not a task of Headrace and was not run; find out who wrote it into the database"
    log_event(where, level="error", task=f"{path!s:.200}", reason=reason)
