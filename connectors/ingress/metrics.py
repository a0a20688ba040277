"""Counters of the ingress for Prometheus. Labels are bounded: names of installed packs and the codes of our own answers."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import Counter, Histogram

RECEIVED: Final = Counter("headrace_received_total", "Deliveries stored as a new receipt.", ["pack"])
DUPLICATES: Final = Counter("headrace_duplicates_total", "Deliveries received before, with the same id and body.", ["pack"])
CONFLICTS: Final = Counter("headrace_conflicts_total", "Deliveries with a known id but a different body.", ["pack"])
UNVERIFIED: Final = Counter("headrace_unverified_total", "Deliveries whose signature did not match.", ["pack"])
REFUSED: Final = Counter("headrace_refused_total", "Requests rejected for another reason, by code.", ["code"])
SPOOLED: Final = Counter("headrace_spooled_total", "Deliveries spooled because the database was unavailable.", ["pack"])
DRAINED: Final = Counter("headrace_spool_drained_total", "Deliveries that left the spool, by outcome.", ["outcome"])
ACCEPT_SECONDS: Final = Histogram(
    "headrace_accept_seconds",
    "Time from reading an accepted delivery to its commit (or synced spool record).",
    ["pack"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

_KEPT: Final = frozenset({"accepted", "duplicate", "spooled"})
_BY_CODE: Final = {"accepted": RECEIVED, "duplicate": DUPLICATES, "conflict": CONFLICTS, "unverified": UNVERIFIED}


def count(code: str, pack_name: str = "", seconds: float | None = None) -> None:
    """Count one answer of the ingress by its code; `seconds`: how long it took to keep the delivery."""
    if seconds is not None and code in _KEPT:
        _accept_seconds(pack_name).observe(seconds)
    counter = _BY_CODE.get(code)
    if code == "spooled":  # counted as received, duplicate or conflict once it is drained
        _series(SPOOLED, pack_name).inc()
    elif counter is None:
        _series(REFUSED, code).inc()
    else:
        _series(counter, pack_name).inc()


@cache
def _series(counter: Counter, label: str) -> Counter:
    """The time series of a label, looked up once and not for each delivery."""
    return counter.labels(label)


@cache
def _accept_seconds(pack_name: str) -> Histogram:
    """As `_series`."""
    return ACCEPT_SECONDS.labels(pack_name)
