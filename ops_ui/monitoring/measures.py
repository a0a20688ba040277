"""Verbs of the engine as counters and histograms: subscribed to the log events (`projection/logs.py`), so that the engine counts nothing.

Labels are bounded by configuration: namespaces, routes, queue classes, and codes of our own; never a record, a URL or another text
from outside. What a process counts is lost with it unless PROMETHEUS_MULTIPROC_DIR is set (`counter_files.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final

from prometheus_client import Counter, Histogram

from projection.database.transactions import CONFLICT_CODES, DUPLICATE_KEY
from projection.execution.attempts import Attempt
from projection.leases import Ending
from projection.limits import queue_classes
from projection.logs import subscribe
from projection.states import State

STAGES: Final = ("prepare", "settle", "facts", "projections", "lanes")
CODES: Final = (*map(str, sorted({*CONFLICT_CODES, DUPLICATE_KEY})), "other")
UNKNOWN: Final = ("unknown", "unknown")
"""Namespace and route of an item that this process did not start: one that was rescued, for example."""
MOST_REMEMBERED: Final = 20_000
"""Items between start and end; a process runs a few hundred at once, the rest ended elsewhere."""

ADMISSION_SECONDS: Final = Histogram(
    "headrace_admission_seconds",
    "Duration of one admission transaction, by stage.",
    ["stage"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
ADMITTED: Final = Counter("headrace_admitted_events_total", "Events that were admitted.", ["namespace"])
KNOWN_EVENTS: Final = Counter(
    "headrace_known_events_total", "Delivered items whose event already existed (duplicates).", ["namespace"]
)
CONFLICTING_ITEMS: Final = Counter(
    "headrace_conflicting_items_total", "Delivered items whose event already existed with a different payload.", ["namespace"]
)
REJECTED_ITEMS: Final = Counter(
    "headrace_rejected_items_total",
    "Delivered items that could not be read and became no event; a body that could not be read counts as one.",
    ["namespace"],
)
SETTLE_SECONDS: Final = Histogram(
    "headrace_settle_delay_seconds",
    "Delay from the creation of a generation to its first start (settling and waiting).",
    ["namespace", "route"],
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600),
)
START_SECONDS: Final = Histogram(
    "headrace_start_delay_seconds",
    "Delay from when work was due to its start.",
    ["queue_class"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600),
)
GENERATION_EVENTS: Final = Histogram(
    "headrace_generation_events",
    "Events in one generation at its first start.",
    ["namespace", "route"],
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)
ATTEMPTS: Final = Counter("headrace_attempts_total", "Finished attempts, by outcome.", ["namespace", "route", "outcome"])
LEASES_LOST: Final = Counter(
    "headrace_leases_lost_total", "Attempts that another worker took over because heartbeats stopped; nothing was written."
)
RESCUED: Final = Counter("headrace_rescued_total", "Items recovered from lost workers.")
UNIT_RETRIES: Final = Counter("headrace_unit_retries_total", "Retried transactions, by the database's error code.", ["code"])

_routes: Final[OrderedDict[int, tuple[str, str]]] = OrderedDict()
_lock: Final = Lock()


def start() -> None:
    """Count from now on in this process. Series whose labels are known beforehand exist at once, so that the first one is an increase."""
    for stage in STAGES:
        ADMISSION_SECONDS.labels(stage)
    for code in CODES:
        UNIT_RETRIES.labels(code)
    for name in queue_classes.WEIGHTS:
        START_SECONDS.labels(name)
    subscribe(measure)


def measure(verb: str, fields: Mapping[str, Any], rows: Sequence[Any]) -> None:
    """Count one log event; verbs that nobody measures pass."""
    handler = _HANDLERS.get(verb)
    if handler is not None:
        handler(fields, rows)


def _admit(fields: Mapping[str, Any], _rows: Sequence[Any]) -> None:
    namespace = fields["namespace"]
    ADMITTED.labels(namespace).inc(fields["count"])
    KNOWN_EVENTS.labels(namespace).inc(fields["duplicates"])
    CONFLICTING_ITEMS.labels(namespace).inc(fields["conflicts"])
    REJECTED_ITEMS.labels(namespace).inc(fields.get("rejected", 0))
    for stage, seconds in fields["stages"].items():
        ADMISSION_SECONDS.labels(stage).observe(seconds)


def _execute(_fields: Mapping[str, Any], rows: Sequence[Attempt]) -> None:
    for attempt in rows:
        item, route = attempt.claimed.item, attempt.claimed.route
        label = (item.namespace, route.key)
        with _lock:
            _routes[item.id] = label
            if len(_routes) > MOST_REMEMBERED:
                _routes.popitem(last=False)
        if item.claimed_at is None or item.claimed_at != item.first_claimed_at:
            continue
        START_SECONDS.labels(queue_classes.base(route.queue_class)).observe(_seconds(item.claimed_at - item.run_after))
        if route.is_projection:
            SETTLE_SECONDS.labels(*label).observe(_seconds(item.claimed_at - item.created))
            GENERATION_EVENTS.labels(*label).observe(len(attempt.inputs))


def _seconds(delay: Any) -> float:
    return max(0.0, float(delay.total_seconds()))


def _end(_fields: Mapping[str, Any], rows: Sequence[Ending]) -> None:
    for ending in rows:
        with _lock:
            label = _routes.pop(ending.item_id, UNKNOWN)
        ATTEMPTS.labels(*label, outcome_of(ending)).inc()


def outcome_of(ending: Ending) -> str:
    """`processed`, `skipped`, `retry`, `deferred`, `timeout`, `rescued`, `dead`, or `handed_back` (never begun)."""
    return ending.outcome or ("handed_back" if ending.state is State.RETRY else str(ending.state.value))


def _lose(_fields: Mapping[str, Any], _rows: Sequence[Any]) -> None:
    LEASES_LOST.inc()


def _rescue(fields: Mapping[str, Any], _rows: Sequence[Any]) -> None:
    RESCUED.inc(fields["count"])


def _try_again(fields: Mapping[str, Any], _rows: Sequence[Any]) -> None:
    code = str(fields.get("error_code"))
    UNIT_RETRIES.labels(code if code in CODES else "other").inc()


_HANDLERS: Final[Mapping[str, Callable[[Mapping[str, Any], Sequence[Any]], None]]] = {
    "admit": _admit,
    "execute": _execute,
    "complete": _end,
    "retry": _end,
    "dead_letter": _end,
    "lease_lost": _lose,
    "rescue": _rescue,
    "conflict": _try_again,
}
