"""The last hour by the minute: received, executed, failed. Read from time indexes, without time-zone functions of the server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import F, Func, IntegerField, QuerySet, Value

from connectors.models import Receipt
from ops_ui.charts import Bars, bars
from projection.models import WorkFailure, WorkItem
from projection.states import ReceiptState, State

MINUTES: Final = 60
ROWS_READ: Final = 500_000
"""Index entries of one series that a page reads at most (some 100 ms); a busier hour is drawn from so many and says so."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of the last hour, oldest minute first."""

    title: str
    kind: str
    chart: Bars
    cut: bool

    @property
    def sentence(self) -> str:
        """The chart in words."""
        if not self.chart.total:
            return f"{self.title}: none in the last hour."
        more = "at least " if self.cut else ""
        return f"{self.title}: {more}{self.chart.total:,} in the last hour, at most {self.chart.peak:,} in one minute."


class _MinutesBefore(Func):
    """Whole minutes from a DATETIME column to a moment, both UTC: no conversion, so no time-zone tables are needed."""

    function = "TIMESTAMPDIFF"
    template = "TIMESTAMPDIFF(MINUTE, %(expressions)s)"
    output_field = IntegerField()


def last_hour(now: datetime) -> list[Series]:
    """Three series; one query each (ix_receipt_state, ix_work_terminal, ix_failure_created)."""
    since = now - timedelta(minutes=MINUTES)
    received = Receipt.objects.filter(state__in=[s.value for s in ReceiptState], received_at__gt=since)
    executed = WorkItem.objects.filter(state__in=[State.PROCESSED, State.SKIPPED], terminal_at__gt=since)
    failed = WorkFailure.objects.filter(created_date__gt=since)
    return [
        _series("Received", "received", received, "received_at", now),
        _series("Executed", "executed", executed, "terminal_at", now),
        _series("Failed attempts", "failed", failed, "created_date", now),
    ]


def _series(title: str, kind: str, rows: QuerySet[Any], column: str, now: datetime) -> Series:
    minute = rows.order_by().annotate(ago=_MinutesBefore(F(column), Value(now))).values("ago")[:ROWS_READ]
    counted = _count_by_minute(minute)
    values = [counted.get(MINUTES - 1 - place, 0) for place in range(MINUTES)]
    return Series(title, kind, bars(values), sum(counted.values()) >= ROWS_READ)


def _count_by_minute(minutes: QuerySet[Any]) -> dict[int, int]:
    """Rows by minutes ago, grouped by the server. A row of a clock ahead of the database's counts as now."""
    text, parameters = minutes.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT GREATEST(bounded.ago, 0) AS minute, COUNT(*) FROM ({text}) AS bounded GROUP BY minute", parameters)
        return {int(ago): int(rows) for ago, rows in cursor.fetchall()}
