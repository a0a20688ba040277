"""Drain: what was spooled becomes receipts, in the order of arrival, exactly once.

A record is in the database before its file is removed; one that is inserted again, after a kill in between, meets its own identity
under the receipt's unique key and changes nothing. One process of a host drains at a time (`drain.lock`).
"""

from __future__ import annotations

import fcntl
import heapq
import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from time import monotonic
from typing import Final

from django.db import DatabaseError, InterfaceError, connections, transaction

from connectors.delivery import Outcome, ReceiptDraft
from connectors.ingress import metrics
from connectors.ingress.insert import insert_draft
from connectors.ingress.outage import INGRESS
from connectors.ingress.spool import files, journal, set_aside
from connectors.ingress.spool.files import Journal
from connectors.ingress.spool.spooled import SpooledDelivery, UnknownRecord
from projection.database import clock, outages
from projection.database.transactions import error_code, is_server_conflict
from projection.logs import log_event
from projection.runtime import wake_up
from projection.safe_text import error_text

BATCH: Final = 50
"""Deliveries of one transaction: a commit costs more than an INSERT."""
BATCH_BYTES: Final = 8 * 1024 * 1024
LOOK_AHEAD_NS: Final = 10 * 10**9
"""A file may be made this long after its first delivery arrived: the database was asked first."""
TRIES: Final = 3
"""Of a record that the database refuses though it takes others; then the record is set aside for an operator."""
APART_SECONDS: Final = 2.0
"""Between two of them. Meanwhile the record has a file of its own, so that it does not hold up those behind it."""
SERVER_CONDITIONS: Final = frozenset(
    {
        1026,  # error writing a file
        1037,  # out of memory
        1040,  # too many connections
        1041,  # out of memory
        1047,  # Galera: not ready
        1053,  # shutting down
        1203,  # too many connections of this user
    }
)
"""Beside a full disk, errors that are about no record: whatever was sent, the server would not have taken it."""
CLOCK_SLACK: Final = timedelta(milliseconds=500)
"""Two looks at both clocks differ by what the query took; only a real step changes what was found first, so that order is kept."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A record of a journal; `end` is the place behind it."""

    journal: Journal
    start: int
    end: int
    payload: bytes = field(repr=False)
    delivery: SpooledDelivery


class Drain:
    """Empties this host's spool; remembers how far each file is drained. Used by one thread, under `alone`."""

    def __init__(self, apart_seconds: float = APART_SECONDS) -> None:
        self._apart_seconds = apart_seconds
        self._places: dict[Journal, int] = {}
        self._read_to: dict[Journal, int] = {}
        """How far each file was read in this run: it is removed there."""
        self._refusals: dict[Journal, tuple[int, float]] = {}
        """Of the records that are alone in their files: how often they were refused, and before when not to try again (monotonic)."""
        self._ahead: timedelta | None = None

    def run(self) -> Counter[str]:
        """Drain everything that is there now; how many records by outcome (`accepted`, `duplicate`, `conflict`, `refused`, and `put_off`:
        refused, but not for the last time).

        Raises the database's error when it is away: what was drained so far stays so.
        """
        done: Counter[str] = Counter()
        now = monotonic()
        found = [one for one in files.journals() if self._refusals.get(one, (0, now))[1] <= now]
        if not found:
            return done
        self._look_at_clocks()
        self._read_to = {}
        for batch in _batches(self._in_order(found)):
            done += self._store(batch)
        for one, end in self._read_to.items():
            self._places[one] = end
            if one.remove_at(end):
                del self._places[one]
                self._refusals.pop(one, None)
        if done:
            wake_up.notify("route")
            log_event("spool_drained", count=done.total(), outcomes=dict(done))
        return done

    def _look_at_clocks(self) -> None:
        ahead = _database_now() - datetime.now(UTC)
        if self._ahead is None or abs(ahead - self._ahead) > CLOCK_SLACK:
            self._ahead = ahead

    def _in_order(self, found: Sequence[Journal]) -> Iterator[Waiting]:
        """The records of all files by arrival; a file is read when its time comes, so that few are in memory at once."""
        upcoming, serial = deque(found), count()
        heap: list[tuple[int, int, Waiting, Iterator[Waiting]]] = []

        def push(rest: Iterator[Waiting]) -> None:
            first = next(rest, None)
            if first is not None:
                heapq.heappush(heap, (first.delivery.arrived_us, next(serial), first, rest))

        while upcoming or heap:
            while upcoming and (not heap or upcoming[0].created_ns - LOOK_AHEAD_NS <= heap[0][0] * 1000):
                push(self._records(upcoming.popleft()))
            if heap:
                _, _, waiting, rest = heapq.heappop(heap)
                yield waiting
                push(rest)

    def _records(self, one: Journal) -> Iterator[Waiting]:
        place = self._places.get(one, 0)
        try:
            data = one.read_from(place)
        except FileNotFoundError:
            return
        self._read_to[one] = place + len(data)
        for found in journal.records(data, one.key):
            start = place + found.start
            if isinstance(found, journal.Damaged):
                _set_aside(one, start, data[found.start : found.end], "torn" if found.torn else "damaged")
                continue
            try:
                yield Waiting(one, start, place + found.end, found.payload, SpooledDelivery.of(found.payload))
            except UnknownRecord:
                _set_aside(one, start, data[found.start : found.end], "damaged")

    def _store(self, batch: Sequence[Waiting]) -> Counter[str]:
        """The batch in one transaction; where the database refuses it, though it answers, its records one by one.

        A disk that is too full for the batch may take some of them.
        """
        try:
            with transaction.atomic(using=INGRESS, durable=True):
                outcomes = [insert_draft(self._dated(one), INGRESS) for one in batch]
        except Exception as error:
            connections[INGRESS].close()
            is_smaller_tried = len(batch) > 1 and outages.is_full(error)
            if not is_smaller_tried and (is_server_conflict(error) or _is_of_the_server(error) or not _takes_writes()):
                raise
            if len(batch) > 1:
                return sum((self._store([one]) for one in batch), Counter[str]())
            return self._refused(batch[0], error)
        for one, outcome in zip(batch, outcomes, strict=True):
            self._places[one.journal] = one.end
            _tell(one.delivery, outcome)
        return Counter(outcome.code for outcome in outcomes)

    def _dated(self, one: Waiting) -> ReceiptDraft:
        """The draft with the time of its arrival by the database's clock."""
        arrived = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=one.delivery.arrived_us)
        # No later than now: this host's clock may have been set back meanwhile.
        received_at = min(arrived, datetime.now(UTC)) + (self._ahead or timedelta())
        return replace(one.delivery.draft, received_at=received_at)

    def _refused(self, one: Waiting, error: Exception) -> Counter[str]:
        tries = self._refusals.get(one.journal, (0, 0.0))[0] + 1
        if tries < TRIES:
            alone = one.journal
            if alone.place is None:
                alone = files.put_alone(one.journal, one.start, journal.framed(one.payload, one.journal.key))
                self._places[one.journal] = one.end
            self._refusals[alone] = tries, monotonic() + self._apart_seconds
            self._read_to.pop(alone, None)
            log_event("spool_refused", level="warning", endpoint=one.delivery.slug, reason=error_text(error), attempt=tries)
            return Counter(put_off=1)
        start = one.start if one.journal.place is None else one.journal.place
        set_aside.keep_refused(one.journal, start, one.payload, error_text(error))
        self._places[one.journal] = one.end
        metrics.DRAINED.labels("refused").inc()
        log_event(
            "spool_refused", level="error", endpoint=one.delivery.slug, reason=error_text(error), attempt=tries, state="aside"
        )
        return Counter(refused=1)


@contextmanager
def alone() -> Iterator[bool]:
    """Hold this host's right to drain while the block runs; False = another process has it. Freed by the kernel after a kill."""
    place = files.folder()
    files.make_folder(place)
    fd = os.open(place / "drain.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def _batches(waiting: Iterator[Waiting]) -> Iterator[list[Waiting]]:
    batch: list[Waiting] = []
    size = 0
    for one in waiting:
        batch.append(one)
        size += len(one.payload)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _tell(delivery: SpooledDelivery, outcome: Outcome) -> None:
    metrics.count(outcome.code, delivery.pack_name)
    metrics.DRAINED.labels(outcome.code).inc()
    log_event(
        "receive",
        namespace=delivery.draft.namespace,
        endpoint=delivery.slug,
        pack=delivery.pack_name,
        receipt_id=outcome.receipt_id,
        state=outcome.code,
        reason="drained from the spool",
    )


def _set_aside(one: Journal, start: int, content: bytes, kind: str) -> None:
    files.set_aside(f"{one.path.name}.{start}.{kind}", content)
    metrics.DRAINED.labels(kind).inc()
    log_event(
        "spool_damaged",
        level="error",
        state=kind,
        count=len(content),
        reason=f"set aside: bytes at {start} of {one.path.name}; see `spool list`",
    )


def _database_now() -> datetime:
    with connections[INGRESS].cursor() as cursor:
        cursor.execute("SELECT UTC_TIMESTAMP(6)")
        moment: datetime = cursor.fetchone()[0]
    return clock.from_db(moment)


def _is_of_the_server(error: Exception) -> bool:
    """Whether the server had no room for the record: a longer one meets a full disk where a shorter one still passes."""
    return error_code(error) in SERVER_CONDITIONS or outages.is_full(error)


def _takes_writes() -> bool:
    """Asked on a fresh connection: the server may have dropped the one before over a statement that it does not take."""
    try:
        with connections[INGRESS].cursor() as cursor:
            outages.probe_writes(cursor)
    except (DatabaseError, InterfaceError):
        connections[INGRESS].close()
        return False
    return True
