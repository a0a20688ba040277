"""Workers that a test drives by hand, step by step, and time that passes when a test says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from projection.claiming.claim import claim
from projection.completion.complete import Ended, complete
from projection.database import clock
from projection.execution.attempts import Attempt
from projection.execution.execute import prepare
from projection.models import WorkItem
from projection.rows import WorkRow
from projection.states import State

LEASE_SECONDS = 60


class ByHand:
    """A worker process: it claims, and reports what the test says. Its flows must be registered (`recording`)."""

    def __init__(self, name: str = "worker-a") -> None:
        self.name = name

    def claim(self, limit: int = 100) -> list[Attempt]:
        """What it took, ready to run."""
        attempts, broken = prepare(claim(limit, owner=self.name, lease_seconds=LEASE_SECONDS), self.name)
        assert broken == []
        return attempts

    def claim_one(self) -> Attempt:
        (attempt,) = self.claim()
        return attempt


def report(attempt: Attempt, state: State = State.PROCESSED, **more: Any) -> Ended:
    """The worker says how an attempt ended."""
    return complete([attempt.ending(state, **more)])


def item_of(attempt: Attempt) -> WorkItem:
    """The attempt's row as it is now."""
    return WorkItem.objects.get(id=attempt.claimed.item.id)


def taken(attempts: Sequence[Attempt]) -> list[WorkRow]:
    return [attempt.claimed.item for attempt in attempts]


def let_leases_run_out() -> None:
    WorkItem.objects.filter(state=State.PROCESSING).update(lease_expires_at=clock.now() - timedelta(seconds=1))


def let_retries_come_due() -> None:
    WorkItem.objects.filter(state=State.RETRY).update(run_after=clock.now() - timedelta(seconds=1))


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """The database's clock, as this connection sees it, stands at `moment`."""
    _set_clock(f"{int(moment.timestamp())}.{moment.microsecond:06d}")
    try:
        yield
    finally:
        _set_clock("DEFAULT")


def _set_clock(value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET timestamp = {value}")
