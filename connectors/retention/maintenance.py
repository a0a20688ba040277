"""Upkeep: what the installation does by itself once in a while, such as `retain`: by one process, whatever the number of clusters.

Due is counted from the end of the last run, by the database's clock: several clusters that ask in the same minute, or all of them
after a stand-still of days, make one run. One that was stopped or killed half-way is gone on with at once by whoever asks next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from django.conf import settings

from connectors.retention.prune import retain
from projection.database.catalogue import Sender
from projection.database.transactions import run_unit
from projection.foreign_code import FAILURES
from projection.logs import log_event
from projection.runtime.django_q.cluster_stop import StopFlag
from projection.runtime.slots import slot
from projection.runtime.stop_flag import Stop
from projection.safe_text import error_text

_sql: Final = Sender(Path(__file__).parent)
PRUNE: Final = "prune"
PRUNE_PERIOD_SECONDS: Final = 3600
"""A day's history goes in 24 small parts, so that no part is long."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a run came to; `finished` False: it was stopped."""

    counts: Mapping[str, int]
    finished: bool


Act = Callable[[Stop], Done]


def prune_if_due() -> bool:
    """Retention, once an hour; whether anything was tried. Three statements when it is not due."""
    return run_if_due(PRUNE, PRUNE_PERIOD_SECONDS, _retain)


def _retain(stop: Stop) -> Done:
    done = retain(stop=stop)
    return Done(done.counts(), done.finished)


def run_if_due(name: str, period_seconds: int, act: Act) -> bool:
    """Do `act`, unless it was done less than a period ago or another process is at it. Whether anything was tried.

    `act` is told to stop when the cluster stops, after the resident budget, and when the slot is lost. An error of it is kept and
    logged; the next to ask tries again.
    """
    flag, ends = StopFlag(), monotonic() + settings.RESIDENT_BUDGET_SECONDS
    with slot(name, 0, everywhere=True) as held:
        if held is None:
            return False
        before = _begun(name, period_seconds)
        if before is None:
            return False
        _run(name, before, partial(act, lambda: flag() or monotonic() >= ends or not held.keep()))
    return True


def _begun(name: str, period_seconds: int) -> dict[str, int] | None:
    """Counts of the run that is to be gone on with; none of a new one; None when nothing is due."""
    rows = _sql.fetch("read_upkeep", name=name, period=period_seconds)
    if rows and not rows[0][1]:
        return None
    if rows and rows[0][0]:
        counts: dict[str, int] = json.loads(rows[0][2])
        return counts
    run_unit("upkeep", lambda: _sql.execute("begin_upkeep", name=name))
    return {}


def _run(name: str, before: Mapping[str, int], act: Callable[[], Done]) -> None:
    note: dict[str, Any] = {"name": name, "counts": json.dumps(dict(before)), "error": None, "finished": 0}
    try:
        done = act()
    except FAILURES as error:  # whatever it was, it is kept for people to see, and tried again in a minute
        note["error"] = error_text(error)
        log_event("upkeep", level="error", task=name, state="failed", error=note["error"])
    else:
        counts = {key: before.get(key, 0) + count for key, count in done.counts.items()}
        note |= {"counts": json.dumps(counts), "finished": int(done.finished)}
        log_event("upkeep", task=name, state="finished" if done.finished else "stopped", counts=counts)
    run_unit("upkeep", lambda: _sql.execute("note_upkeep", **note))
