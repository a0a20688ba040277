"""An endpoint's own limits: deliveries per time and requests at once; what is above is answered 429 with Retry-After.

Each process counts for itself (a delivery is one INSERT and nothing else, so there is no shared counter): it allows the limit divided
by the number of web processes, at least 1. Only deliveries whose signature is right use up the rate; a stranger cannot exhaust it.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from django.conf import settings

from connectors.delivery import Outcome
from connectors.ingress.endpoint_facts import EndpointFacts

TOO_MANY_AT_ONCE: Final = Outcome(
    "too_many_at_once",
    429,
    message="Too many concurrent requests to this endpoint; please send the delivery again later.",
    retry_after=1,
)
_LARGEST: Final = 4096
"""Buckets kept at once: endpoints are made by operators, so this is never reached in practice."""


class Bucket:
    """A token bucket: `count` deliveries in `period` seconds on average, and `count` (at least 1) at once after a pause."""

    def __init__(self, count: float, period: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._per_second = count / period
        self._size = max(1.0, count)
        self._tokens = self._size
        self._at = clock()
        self._lock = threading.Lock()

    def wait(self, take: int) -> float:
        """Seconds until a token is there; 0.0 = one is, and `take` of them are taken."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._size, self._tokens + (now - self._at) * self._per_second)
            self._at = now
            if self._tokens < 1:
                return (1 - self._tokens) / self._per_second
            self._tokens -= take
            return 0.0


_lock: Final = threading.Lock()
_buckets: Final[dict[tuple[int, tuple[int, float]], Bucket]] = {}
_at_once: Final[Counter[int]] = Counter()


def take(endpoint: EndpointFacts) -> Outcome | None:
    """Count a verified delivery; the refusal when there were too many."""
    return _refusal(endpoint, 1)


def exhausted(endpoint: EndpointFacts) -> Outcome | None:
    """The refusal that any delivery would get now, before its body is read. Counts nothing."""
    return _refusal(endpoint, 0)


def take_place(endpoint: EndpointFacts) -> bool:
    """Take one of the endpoint's places for requests at once; False = all are taken. Whoever got one gives it back."""
    most = endpoint.limits.concurrency
    if most is None:
        return True
    with _lock:
        is_free = _at_once[endpoint.id] < max(1, most // settings.HEADRACE_WEB_PROCESSES)
        _at_once[endpoint.id] += is_free
    return is_free


def give_place_back(endpoint: EndpointFacts) -> None:
    """The request that got a place by these facts is answered."""
    if endpoint.limits.concurrency is not None:
        with _lock:
            _at_once[endpoint.id] -= 1


def forget() -> None:
    """As in a new process (tests)."""
    with _lock:
        _buckets.clear()
        _at_once.clear()


def _refusal(endpoint: EndpointFacts, tokens: int) -> Outcome | None:
    if endpoint.limits.limit is None:
        return None
    seconds = _bucket(endpoint.id, endpoint.limits.limit).wait(tokens)
    if not seconds:
        return None
    return Outcome(
        "rate_limited",
        429,
        message="Rate limit of this endpoint exceeded; please send the delivery again later.",
        retry_after=max(1, math.ceil(seconds)),
    )


def _bucket(endpoint_id: int, limit: tuple[int, float]) -> Bucket:
    count, period = limit
    with _lock:
        if (endpoint_id, limit) not in _buckets:
            if len(_buckets) >= _LARGEST:
                del _buckets[next(iter(_buckets))]
            _buckets[endpoint_id, limit] = Bucket(count / settings.HEADRACE_WEB_PROCESSES, period)
        return _buckets[endpoint_id, limit]
