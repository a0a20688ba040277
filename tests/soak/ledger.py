"""What the senders know: what they were told, and what Headrace must have because of it."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter

from tests.soak.deliveries import ENDPOINTS, ROUTES, Delivery


class Ledger:
    """Written by all sender threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.receipts: dict[str, set[str]] = {endpoint: set() for endpoint in ENDPOINTS}
        """Endpoint → SHA-256 of each body that was answered 2xx."""
        self.facts: dict[str, dict[int, str]] = {route: {} for route in ROUTES}
        """Route → number of each of its facts that was answered 2xx → its source."""
        self.answers: Counter[str] = Counter()
        """How tries ended: a status, `202 spooled`, or the name of the exception."""
        self.repeated = 0
        """Deliveries that were sent again although they had been accepted."""
        self.wrong: list[str] = []
        """Answers that nothing in the soak should lead to."""

    @property
    def accepted(self) -> int:
        return sum(count for answer, count in self.answers.items() if answer[:3] in ("200", "202")) - self.repeated

    def taken(self, delivery: Delivery, body: bytes, answer: str, *, again: bool) -> None:
        with self._lock:
            self.answers[answer] += 1
            self.receipts[delivery.endpoint].add(hashlib.sha256(body).hexdigest())
            for route in delivery.routes:
                self.facts[route].update(delivery.facts)
            self.repeated += again

    def refused(self, answer: str) -> None:
        """Not taken, or nobody knows: it is sent again."""
        with self._lock:
            self.answers[answer] += 1

    def surprised(self, delivery: Delivery, answer: str) -> None:
        with self._lock:
            self.answers[answer[:3]] += 1
            self.wrong.append(f"{delivery.endpoint} {sorted(delivery.facts)}: {answer[:300]}")
