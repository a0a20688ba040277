"""`/metrics` for Prometheus: what this host's processes counted, and what the database holds.

The processes of a host share their counters through the folder PROMETHEUS_MULTIPROC_DIR (`counter_files.py`; the supervisor of
`script/server` makes an empty one at each start); without it the page shows the process that answers. docs/monitoring.md lists them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from connectors.ingress import paths
from ops_ui.monitoring import alerts, counter_files, counts, health, progress, spool_status
from projection.database import clock

PREFIX: Final = "headrace_"
AREAS: Final = {paths.PREFIX: "ingress", "/admin/": "console"}

REQUESTS: Final = Counter("headrace_http_requests_total", "Responses by stage and status.", ["room", "stage", "status"])
SECONDS: Final = Histogram(
    "headrace_http_request_seconds",
    "Response time, by stage.",
    ["room", "stage"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


class RequestMetrics:
    """Middleware: counts and times every answer, under a few fixed labels (never a path: paths are made by strangers)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        area = next((name for prefix, name in AREAS.items() if request.path_info.startswith(prefix)), "service")
        seconds, requests = _series(area, str(response.status_code))
        seconds.observe(time.perf_counter() - started)
        requests.inc()
        return response


@cache
def _series(area: str, status: str) -> tuple[Histogram, Counter]:
    """The time series of these labels, which are few: looked up once, not for each request."""
    return SECONDS.labels(area, area), REQUESTS.labels(area, area, status)


class DatabaseCollector(Collector):
    """Gauges read from the database at each scrape; counts stop at 100,000, so that a scrape is cheap at any size."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("headrace_database_up", "1 when the database answers this scrape.")
        try:
            families = list(_families()) if health.database_answers() else None
        except Error:
            families = None
        if families is None:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield _single("headrace_database_writable", "1 when the database accepts writes", float(health.database_takes_writes()))
        yield from families


class SpoolCollector(Collector):
    """Gauges of this host's spool and disk, read from its folder at each scrape, whether the database answers or not."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        spool = spool_status.status()
        yield _single("headrace_spool_bytes", "Bytes waiting in this host's spool", spool.waiting_bytes)
        yield _single("headrace_spool_limit_bytes", "Size limit of this host's spool, in bytes", spool.limit_bytes)
        yield _single("headrace_spool_oldest_seconds", "Age of the oldest delivery in this host's spool", spool.oldest_seconds)
        yield _single("headrace_state_disk_free_bytes", "Free bytes of the disk under HEADRACE_STATE_DIR", spool.free_bytes)
        yield _single("headrace_spool_aside_files", "Spool files set aside for inspection", spool.aside_files)


def _families() -> Iterator[GaugeMetricFamily]:
    now = clock.now()
    work = counts.work_by_state(counts.METRICS_CAP)
    yield _by_label("headrace_receipts", "Receipts", "state", _values(counts.receipts_by_state(counts.METRICS_CAP)))
    yield _by_label("headrace_work_items", "Work items", "state", _values(work))
    waiting = {one.stage: age.total_seconds() if (age := one.age(now)) is not None else 0.0 for one in counts.oldest_waiting()}
    yield _by_label(
        "headrace_oldest_waiting_seconds",
        "Age of the oldest waiting receipt or work item; 0 = nothing waits",
        ("room", "stage"),
        waiting,
    )
    ages = GaugeMetricFamily(
        "headrace_oldest_due_seconds",
        "How long the oldest runnable receipt or work item has been due; 0 = none is due.",
        labels=["room", "stage", "queue_class"],
    )
    for due in progress.due_ages():
        ages.add_metric([due.stage, due.stage, due.queue_class], due.seconds(now))
    yield ages
    raised = {one.name: float(one.is_raised) for one in alerts.stored()}
    yield _by_label("headrace_alert_raised", "1 while an alert is raised", "alert", raised)
    dead = counts.undiscarded_dead(counts.METRICS_CAP)
    yield _single("headrace_dead_letters", "Dead letters that were not discarded", dead.value)
    yield _single("headrace_lanes_held", "Lanes held by an operator", counts.lanes_held(counts.METRICS_CAP).value)
    alive = {"router": 0, "worker": 0, **counts.workers_alive(now)}
    yield _by_label("headrace_workers_alive", "Processes with a recent heartbeat", "kind", alive)


def _values(by_state: Mapping[str, counts.Count]) -> dict[str, float]:
    return {state: one.value for state, one in by_state.items()}


def _by_label(name: str, text: str, label: str | tuple[str, ...], values: Mapping[str, float]) -> GaugeMetricFamily:
    """One series for each value; several labels say the same (an old name beside its new one)."""
    labels = (label,) if isinstance(label, str) else label
    family = GaugeMetricFamily(name, f"{text}.", labels=labels)
    for key, value in values.items():
        family.add_metric([key] * len(labels), value)
    return family


def _single(name: str, text: str, value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, f"{text}.")
    family.add_metric([], value)
    return family


@never_cache
@require_safe
def metrics(_request: HttpRequest) -> HttpResponse:
    """The exposition text; holds no secret and no name from outside. 17 to 25 bounded queries."""
    text = generate_latest(_process_registry()) + generate_latest(_database_registry())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _process_registry() -> CollectorRegistry:
    where = counter_files.folder()
    if where is None:
        return REGISTRY
    registry = CollectorRegistry()
    registry.register(_SharedCounters(where))
    return registry


class _SharedCounters(Collector):
    """What the processes of this host counted together. A metric that nobody touched yet has its name and type, and no series."""

    def __init__(self, where: Path) -> None:
        self._where = where

    def describe(self) -> list[Metric]:
        return []  # nothing is read before the scrape

    def collect(self) -> Iterator[Metric]:
        found = counter_files.read(self._where)
        yield from found
        names = {metric.name for metric in found}
        for metric in REGISTRY.collect():
            if metric.name.startswith(PREFIX) and metric.name not in names:
                yield Metric(metric.name, metric.documentation, metric.type)


def _database_registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(DatabaseCollector())
    registry.register(SpoolCollector())
    return registry
