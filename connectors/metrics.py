"""Counters of the ingress for Prometheus. Labels are bounded: names of installed packs and the codes of our own answers."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter

RECEIVED: Final = Counter("headrace_received_total", "Deliveries stored as a new receipt.", ["pack"])
DUPLICATES: Final = Counter("headrace_duplicates_total", "Deliveries whose id and body were known already.", ["pack"])
CONFLICTS: Final = Counter("headrace_conflicts_total", "Deliveries under a known id with another body.", ["pack"])
UNVERIFIED: Final = Counter("headrace_unverified_total", "Deliveries whose signature did not match.", ["pack"])
REFUSED: Final = Counter("headrace_refused_total", "Requests that were refused for another reason, by code.", ["code"])

_BY_CODE: Final = {"accepted": RECEIVED, "duplicate": DUPLICATES, "conflict": CONFLICTS, "unverified": UNVERIFIED}


def count(code: str, pack_name: str = "") -> None:
    """Count one answer of the ingress by its code."""
    counter = _BY_CODE.get(code)
    if counter is None:
        REFUSED.labels(code).inc()
    else:
        counter.labels(pack_name).inc()
