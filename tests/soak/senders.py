"""Providers at work: so many deliveries a second whatever becomes of them, each again and again until it is taken."""

from __future__ import annotations

import heapq
import http.client
import itertools
import json
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from tests.soak.deliveries import Delivery, Mix
from tests.soak.ledger import Ledger

THREADS: Final = 16
AGAIN: Final = 0.1
"""Share of the accepted deliveries that come once more."""
AGAIN_WITHIN_SECONDS: Final = 5.0
RETRY_SECONDS: Final = (0.3, 2.0)
ANSWER_SECONDS: Final = 20.0
TICK_SECONDS: Final = 0.01
IDLE_SECONDS: Final = 0.1
REFUSALS: Final = {503, 429}


@dataclass(order=True)
class Try:
    """One request that is due at `due` (monotonic)."""

    due: float
    serial: int
    delivery: Delivery = field(compare=False)
    turn: int = field(compare=False)
    again: bool = field(compare=False, default=False)


class Senders:
    """`rate` new deliveries a second while `may_send()`; those that were refused come again whatever it says."""

    def __init__(self, port: int, mix: Mix, ledger: Ledger, *, rate: float, seed: int) -> None:
        self._port = port
        self._mix = mix
        self._ledger = ledger
        self._rate = rate
        self.may_send: Callable[[], bool] = lambda: True
        """Whether the service is not too far behind for new deliveries."""
        self._chance = random.Random(seed)
        self._later: list[Try] = []
        """A heap: what is not due yet."""
        self._now: queue.SimpleQueue[Try] = queue.SimpleQueue()
        self._serials = itertools.count()
        self._open = 0
        self._lock = threading.Lock()
        self._no_more = threading.Event()
        self._end = threading.Event()
        self.made = 0
        self.held_seconds = 0.0
        """How long `may_send` kept new deliveries back."""
        self._threads = [threading.Thread(target=self._pace, daemon=True)]
        self._threads += [threading.Thread(target=self._send, daemon=True) for _ in range(THREADS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def open(self) -> int:
        """Requests that are still to be made, or under way."""
        return self._open

    def make_no_more(self) -> None:
        """Only what is open goes on."""
        self._no_more.set()

    def stop(self) -> None:
        self._no_more.set()
        self._end.set()
        for thread in self._threads:
            thread.join(ANSWER_SECONDS + 5)

    def _pace(self) -> None:
        next_at = monotonic()
        while not self._end.wait(TICK_SECONDS):
            now = monotonic()
            if self._no_more.is_set() or not self.may_send():
                self.held_seconds += 0.0 if self._no_more.is_set() else max(0.0, now - next_at)
                next_at = now
            while next_at < now:
                self._put(Try(next_at, next(self._serials), self._mix.next(), 0))
                self.made += 1
                next_at += 1 / self._rate
            with self._lock:
                while self._later and self._later[0].due <= now:
                    self._now.put(heapq.heappop(self._later))

    def _put(self, one: Try) -> None:
        with self._lock:
            self._open += 1
            heapq.heappush(self._later, one)

    def _send(self) -> None:
        connection = self._connection()
        while not self._end.is_set():
            try:
                one = self._now.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                continue
            if not self._try(connection, one):
                connection.close()
                connection = self._connection()
            with self._lock:
                self._open -= 1
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)

    def _try(self, connection: http.client.HTTPConnection, one: Try) -> bool:
        """Whether the connection can be used again."""
        body, headers = one.delivery.make(one.turn)
        try:
            connection.request("POST", one.delivery.path, body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:  # killed before its answer: was it stored, or not?
            self._ledger.refused(type(error).__name__)
            self._retry(one)
            return False
        if response.status in (200, 202):
            self._taken(one, body, response.status, text)
        elif response.status in REFUSALS:
            self._ledger.refused(f"{response.status} {json.loads(text)['code']}")
            self._retry(one)
        else:
            self._ledger.surprised(one.delivery, f"{response.status} {text}")
        return not response.will_close

    def _taken(self, one: Try, body: bytes, status: int, text: str) -> None:
        answer = f"{status} spooled" if json.loads(text).get("spooled") else str(status)
        self._ledger.taken(one.delivery, body, answer, again=one.again)
        if not one.again and self._chance.random() < AGAIN:
            due = monotonic() + self._chance.uniform(0, AGAIN_WITHIN_SECONDS)
            self._put(Try(due, next(self._serials), one.delivery, one.turn + 1, again=True))

    def _retry(self, one: Try) -> None:
        due = monotonic() + self._chance.uniform(*RETRY_SECONDS)
        self._put(Try(due, next(self._serials), one.delivery, one.turn + 1, again=one.again))
