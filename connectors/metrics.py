"""Counters of the ingress for Prometheus. Labels are bounded: names of installed packs and the codes of our own answers."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

RECEIVED: Final = Counter("headrace_received_total", "Deliveries stored as a new receipt.", ["pack"])
DUPLICATES: Final = Counter("headrace_duplicates_total", "Deliveries whose id and body were known already.", ["pack"])
CONFLICTS: Final = Counter("headrace_conflicts_total", "Deliveries under a known id with another body.", ["pack"])
UNVERIFIED: Final = Counter("headrace_unverified_total", "Deliveries whose signature did not match.", ["pack"])
REFUSED: Final = Counter("headrace_refused_total", "Requests that were refused for another reason, by code.", ["code"])
SPOOLED: Final = Counter("headrace_spooled_total", "Deliveries kept on the host because the database was away.", ["pack"])
DRAINED: Final = Counter(
    "headrace_spool_drained_total", "Spooled records that left the spool, by what became of them.", ["outcome"]
)

_BY_CODE: Final = {"accepted": RECEIVED, "duplicate": DUPLICATES, "conflict": CONFLICTS, "unverified": UNVERIFIED}


def count(code: str, pack_name: str = "") -> None:
    """Count one answer of the ingress by its code."""
    counter = _BY_CODE.get(code)
    if code == "spooled":  # counted as received, duplicate or conflict once it is drained
        SPOOLED.labels(pack_name).inc()
    elif counter is None:
        REFUSED.labels(code).inc()
    else:
        counter.labels(pack_name).inc()
