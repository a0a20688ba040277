"""Drain: per-event no-op items, run by one worker, beside a hand-written batched loop on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, Final

import MySQLdb
from django.db import connection

from connectors.bench import sc400
from connectors.bench.workbench import BenchFailed, empty, own_database, run_worker, server
from connectors.routing.router import drain_receipts
from projection.flows import Generation
from projection.models import WorkItem

BATCH: Final = 100


def run(items: int, repeat: int, *, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Drain `items` per-event items `repeat` times; medians, and each repetition under `runs`. Raises BenchFailed."""
    with own_database():
        sc400.configure()
        runs = []
        for number in range(repeat):
            runs.append(_repetition(items))
            say(f"run {number + 1}: {runs[-1]['items_per_s']:.0f} items/s, loop {runs[-1]['loop_items_per_s']:.0f} items/s")
        database = server()
    return {"database": database, **{name: median(run[name] for run in runs) for name in runs[0]}, "runs": runs}


def _repetition(items: int) -> dict[str, Any]:
    empty()
    _admit(items)
    seconds, stages = _worker(items)
    _reset()
    loop = _hand_written_loop(items)
    return {
        "items": items,
        "items_per_s": items / seconds,
        "loop_items_per_s": items / loop,
        "ratio": loop / seconds,
        **{f"{stage}_s": spent for stage, spent in stages.items()},
    }


def _admit(items: int) -> None:
    sc400.store_events([sc400.action(number) for number in range(items)])
    drain_receipts(sc400.NAMESPACE)


def _worker(items: int) -> tuple[float, dict[str, float]]:
    """Seconds in all, and by stage. Raises BenchFailed unless each item ran once."""
    seen: set[str] = set()

    def noop(generation: Generation) -> None:
        seen.add(generation.work_id)

    seconds, stages = run_worker(noop, batch=BATCH)
    done = WorkItem.objects.filter(state="processed").count()
    if (len(seen), done) != (items, items):
        raise BenchFailed(f"{len(seen)} of {items} items ran, {done} are processed")
    return seconds, stages


def _reset() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE `_System_ConnectorWorkItem` SET State = 'pending', QueueClass = 'interactive', TerminalAt = NULL, "
            "ClaimedAt = NULL, Attempts = 0"
        )


def _hand_written_loop(items: int) -> float:
    """Claim 100, read their inputs with one query, complete 100 in one transaction: seconds for all, with plain mysqlclient."""
    plain = MySQLdb.connect(**connection.get_connection_params())
    try:
        cursor = plain.cursor()
        done = 0
        started = perf_counter()
        while done < items:
            cursor.execute(
                "SELECT Id, EventId FROM `_System_ConnectorWorkItem` WHERE State = 'pending' AND QueueClass = 'interactive' "
                "AND RunAfter <= UTC_TIMESTAMP(6) ORDER BY RunAfter, Id LIMIT %s",
                [BATCH],
            )
            rows = cursor.fetchall()
            if not rows:
                raise BenchFailed(f"the hand-written loop found only {done} of {items} items")
            ids, events = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
            cursor.execute(
                "UPDATE `_System_ConnectorWorkItem` SET State = 'processing', LeaseToken = 'loop', LaneHolderKey = LaneKey, "
                "ClaimedAt = UTC_TIMESTAMP(6), Attempts = Attempts + 1 WHERE Id IN %s AND State = 'pending'",
                [ids],
            )
            plain.commit()
            cursor.execute("SELECT Id, Payload FROM `_System_ConnectorEvent` WHERE Id IN %s", [events])
            cursor.fetchall()
            cursor.execute(
                "UPDATE `_System_ConnectorWorkItem` SET State = 'processed', TerminalAt = UTC_TIMESTAMP(6), LeaseToken = NULL, "
                "LaneHolderKey = NULL WHERE Id IN %s AND State = 'processing' AND LeaseToken = 'loop'",
                [ids],
            )
            plain.commit()
            done += len(rows)
        return perf_counter() - started
    finally:
        plain.close()
