"""Bounded counts of each stage: what the overview and `/metrics` say, never a COUNT over a whole large table.

A count stops at its cap; a `Count` knows that it did. Every read goes through the index named beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet

from connectors.models import Receipt
from projection.leases import ALIVE_SECONDS
from projection.models import LaneHold, Worker, WorkItem
from projection.states import NONTERMINAL, ReceiptState, State

CONSOLE_CAP: Final = 10_000
METRICS_CAP: Final = 100_000


@dataclass(frozen=True, slots=True)
class Count:
    """`value` rows, or more of them when `capped`."""

    value: int
    capped: bool = False

    def __str__(self) -> str:
        return f"{self.value:,}{'+' if self.capped else ''}"

    def __bool__(self) -> bool:
        return self.value > 0


def count(rows: QuerySet[Any], cap: int) -> Count:
    """How many rows, at most `cap`: one statement that stops reading at `cap` + 1."""
    found = rows.order_by()[: cap + 1].count()
    return Count(min(found, cap), found > cap)


def receipts_by_state(cap: int) -> dict[str, Count]:
    """Index ix_receipt_state. One query for each of the five states."""
    return {state.value: count(Receipt.objects.filter(state=state), cap) for state in ReceiptState}


def work_by_state(cap: int) -> dict[str, Count]:
    """Index ix_work_terminal. One query for each of the eight states."""
    return {state.value: count(WorkItem.objects.filter(state=state), cap) for state in State}


def undiscarded_dead(cap: int) -> Count:
    """Dead items that nobody discarded."""
    return count(WorkItem.objects.filter(state=State.DEAD, discarded_at=None), cap)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Since when the oldest row of a stage waits; None = nothing waits there."""

    stage: str
    since: datetime | None

    def age(self, now: datetime) -> timedelta | None:
        return None if self.since is None else max(now - self.since, timedelta())


def oldest_waiting() -> list[Waiting]:
    """The oldest row that waits for the router and the oldest work item of each live state: one row of an index each. Two queries."""
    receipt = Receipt.objects.filter(state=ReceiptState.PENDING).order_by("received_at").values_list("received_at", flat=True)
    first, *others = (_oldest_work(state) for state in sorted(NONTERMINAL))
    since = dict(first.union(*others, all=True))
    return [Waiting("route", receipt.first()), *(Waiting(state.value, since.get(state.value)) for state in sorted(NONTERMINAL))]


def _oldest_work(state: State) -> QuerySet[WorkItem, tuple[str, datetime]]:
    return WorkItem.objects.filter(state=state, terminal_at=None).order_by("id").values_list("state", "created_date")[:1]


def lanes_held(cap: int) -> Count:
    return count(LaneHold.objects.all(), cap)


def workers_alive(now: datetime) -> dict[str, int]:
    """Live processes by kind (index ix_worker_seen; a handful of rows)."""
    alive: dict[str, int] = {}
    for kind in live_workers(now).values_list("kind", flat=True):
        alive[kind] = alive.get(kind, 0) + 1
    return alive


def live_workers(now: datetime) -> QuerySet[Worker]:
    return Worker.objects.filter(seen_at__gte=now - timedelta(seconds=ALIVE_SECONDS)).order_by("kind", "host", "pid", "id")
