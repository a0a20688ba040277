"""The dispatcher of a worker: gives each attempt to the executor of its kind, and writes what ended.

Executors take attempts (`submit`), give back what has not started (`take_back`) and report what ended (`ended`). Endings of plain flows
are written in batches by a keeper, a thread with a connection of its own, while the worker claims and flows run.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Final, Protocol

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from projection.claiming import started
from projection.completion.complete import complete
from projection.database.outages import is_connection_lost, is_database_away
from projection.database.transactions import is_conflict
from projection.execution.atomic_queue import AtomicQueue
from projection.execution.attempts import Attempt, hand_back
from projection.execution.execute import run_plain
from projection.execution.heartbeat import Heartbeat
from projection.execution.thread_pool import ThreadPool
from projection.facts import Outage
from projection.leases import Ending
from projection.limits import circuit_breaker, starts
from projection.logs import log_event
from projection.runtime import wake_up
from projection.runtime.stop_flag import Stop, never
from projection.safe_text import error_text
from projection.states import State

TICK_SECONDS: Final = 0.2
"""How often time-outs are looked at while flows run, and the worker's stop flag while it waits for them."""
FLUSH_SECONDS: Final = 0.25
"""An ending waits at most about this long for company before it is written."""
FLUSH_ITEMS: Final = 100
"""Nor does it wait once there are so many."""
LONGEST_BACKOFF_SECONDS: Final = 5.0
"""Ceiling of the pause between two tries to write endings while the database is away; their leases may run out meanwhile."""
CLOSING_SECONDS: Final = 10.0
"""How long a dispatcher that closes still tries to write endings; then their leases run out, and the items run again elsewhere."""


class Executor(Protocol):
    """Runs attempts of one kind, and reports each end to the dispatcher that made it. Called with the dispatcher's lock held."""

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Take attempts; each starts when it may."""

    def take_back(self, destinations: Collection[str] | None = None) -> list[Attempt]:
        """What has not started (for these destinations, or at all), taken out."""

    def seconds(self, most: float) -> float:
        """Until an attempt may start that waits for its moment, at most `most`."""

    def is_idle(self) -> bool:
        """Whether nothing waits or runs here."""


class Stages(defaultdict[str, float]):
    """Seconds spent in each stage of the work."""

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        since = perf_counter()
        try:
            yield
        finally:
            self[stage] += perf_counter() - since


class Dispatcher:
    """The dispatcher of one worker. Its methods are for the worker's thread, `ended` for those of executors too.

    What the write of endings raises is tried again (conflict, database away), or one by one, so that the one at fault fails alone and
    is left to its lease.
    """

    def __init__(self, heartbeat: Heartbeat, *, stop: Stop = never) -> None:
        self.stages = Stages(float)
        self._heartbeat = heartbeat
        self._changed = threading.Condition()
        self._pool = ThreadPool(self._changed, self._run, self.ended)
        self._queue = AtomicQueue(heartbeat, stop, self._settled, self._return)
        self._executors: Final[tuple[Executor, ...]] = (self._pool, self._queue)
        self._keeper: threading.Thread | None = None
        self._ended: list[Ending] = []
        self._oldest_ended = 0.0
        """Monotonic seconds of the first of them."""
        self._writing = False
        self._failures = 0
        """Tries to write that failed in a row."""
        self._retry_at = 0.0
        """Monotonic seconds before which no write is tried again."""
        self._closed_at: float | None = None

    # ---- the worker's side

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Run all attempts, each when it may."""
        with self._changed:
            self._start_keeper()
            self._pool.submit([attempt for attempt in attempts if not attempt.flow.atomic])
            self._queue.submit([attempt for attempt in attempts if attempt.flow.atomic])
            self._changed.notify_all()

    def run_atomic(self) -> None:
        """Run the atomic flows whose moment has come, in this thread."""
        with self._changed:
            due = self._queue.take_due()
        self._queue.run(due)

    def hand_back(self, destinations: Collection[str] | None = None) -> None:
        """Give back what has not started: of these destinations, since they are away, or all, as a worker does that stops."""
        with self._changed:
            self._return([attempt for one in self._executors for attempt in one.take_back(destinations)])

    def seconds_to_turn(self, most: float) -> float:
        """Until an atomic flow may start that waits for its rate limit, at most `most`."""
        with self._changed:
            return self._queue.seconds(most)

    def wait_for_room(self) -> bool:
        """Whether so few attempts are unstarted, before a tick is over or an atomic flow may start, that any destination may have more."""
        with self._changed:
            return self._changed.wait_for(self._pool.has_room, self._queue.seconds(TICK_SECONDS))

    def busy(self) -> list[str] | None:
        """Destinations of which no more should be claimed while others have room; None: nothing else could run now either."""
        with self._changed:
            return self._pool.busy() if self._pool.has_idle_threads() else None

    def wait_until_done(self, seconds: float = TICK_SECONDS) -> bool:
        """Whether everything has ended and is written, within this time and before an atomic flow may start."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_done() and self._queue.is_idle(), self._queue.seconds(seconds))

    @property
    def is_broken(self) -> bool:
        """Whether the process should be replaced: a flow did not return in time, or the keeper died of a fault of ours."""
        return self._pool.stuck > 0 or (self._keeper is not None and self._closed_at is None and not self._keeper.is_alive())

    def close(self) -> None:
        """Bring everything to its end, but stuck threads; what waits for its turn in this very thread is handed back."""
        with self._changed:
            self._return(self._queue.take_back())
            self._closed_at = monotonic()
            self._changed.notify_all()
        if self._keeper is not None:
            self._keeper.join()
        self._pool.close()

    # ---- the executors' side

    def ended(self, endings: Sequence[Ending]) -> None:
        """Attempts have ended, or need no run: their ends are to be written."""
        with self._changed:
            self._start_keeper()
            for ending in endings:
                if not self._ended:
                    self._oldest_ended = monotonic()
                self._ended.append(ending)
                if isinstance(ending.seen, Outage):
                    self._pool.in_doubt.add(ending.destination)
            if self._is_due():
                self._changed.notify_all()

    def _settled(self, endings: Sequence[Ending]) -> None:
        """Attempts have written their own end."""
        self._heard(endings)
        self._release(endings)

    def _return(self, attempts: Sequence[Attempt]) -> None:
        if attempts:
            self.ended([hand_back(attempt) for attempt in attempts])

    def _run(self, attempt: Attempt) -> Ending | None:
        """Run a plain flow, in its thread; None: it has written its own end."""
        try:
            may_start = starts.limit_allows(attempt.claimed.route.id, attempt.claimed.starts_at)
        except (DatabaseError, InterfaceError):  # nobody knows; the next claim asks again
            may_start = False
        if not (may_start and self._is_noted(attempt)):
            return hand_back(attempt)
        self._heartbeat.started(attempt.lease, attempt.flow.timeout)
        begun = monotonic()
        ending = run_plain(attempt)
        started.took(attempt.flow, monotonic() - begun)
        if ending is None:
            self._settled([attempt.ending(State.PROCESSED)])
        return ending

    def _is_noted(self, attempt: Attempt) -> bool:
        """Whether it is written down that the attempt starts; else it must not."""
        if attempt.claimed.item.is_started:
            return True
        close_old_connections()  # the thread's own may have gone away while it was idle
        try:
            started.note(*attempt.lease)
        except (DatabaseError, InterfaceError) as error:
            log_event(
                "execute", level="warning", work_id=attempt.claimed.item.work_id, error=error_text(error), reason="not started"
            )
            connection.close()
            return False
        return True

    # ---- the keeper's side

    def _start_keeper(self) -> None:
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        """Body of the keeper: look at time-outs, write endings in batches, until closed and done."""
        try:
            while not self._is_over():
                if ended := self._wait_for_endings():
                    unwritten = self._write_all(ended)
                    with self._changed:
                        self._writing = False
                        self._ended[:0] = unwritten
                        self._pool.in_doubt = {one.destination for one in self._ended if isinstance(one.seen, Outage)}
                        self._pool.start_runners()
                        self._changed.notify_all()
        finally:
            connection.close()

    def _wait_for_endings(self) -> list[Ending]:
        """The endings to be written now: none, when a tick is over before any are due."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_due() or (self._closed_at is not None and self._is_done()), self._pool.seconds(TICK_SECONDS)
            )
            self._pool.start_runners()
            self._pool.give_up_late_ones()
            if not self._is_due():
                return []
            ended, self._ended, self._writing = self._ended, [], True
            return ended

    def _is_over(self) -> bool:
        with self._changed:
            if self._closed_at is None:
                return False
            return self._is_done() or (self._failures > 0 and monotonic() - self._closed_at > CLOSING_SECONDS)

    def _is_done(self) -> bool:
        """Whether nothing of the pool waits or runs, and everything that ended is written."""
        return self._pool.is_idle() and not (self._ended or self._writing)

    def _is_due(self) -> bool:
        """Whether the endings have waited long enough for company: nothing runs that could join them, or time or number say so."""
        now = monotonic()
        if not self._ended or now < self._retry_at:
            return False
        return (
            bool(self._pool.in_doubt)
            or self._pool.is_idle()
            or any(ending.frees_place for ending in self._ended)
            or len(self._ended) >= FLUSH_ITEMS
            or now - self._oldest_ended >= FLUSH_SECONDS
        )

    def _write_all(self, endings: list[Ending], *, again: bool = False) -> list[Ending]:
        """Write endings; those that shall be tried again. One that cannot be written is left to its lease, and said so.

        A lost connection is no ending's fault before it happens `again` on a fresh one: the server ends idle ones.
        """
        try:
            self._write(endings)
        except Exception as error:  # noqa: BLE001 - whatever it is, endings are evidence that must not be lost with a thread
            log_event("complete", level="error", count=len(endings), error=error_text(error))
            if is_conflict(error) or is_database_away(error):
                self._failures += 1
                self._retry_at = monotonic() + min(LONGEST_BACKOFF_SECONDS, 0.1 * 2.0 ** min(self._failures, 10))
                return endings
            if len(endings) > 1:
                return [ending for one in endings for ending in self._write_all([one])]
            if is_connection_lost(error) and not again:
                return self._write_all(endings, again=True)
            log_event(
                "complete",
                level="error",
                work_id=endings[0].work_id,
                reason="not written; the item runs again after its lease expires",
            )
            self._abandon(endings[0])
        self._failures, self._retry_at = 0, 0.0
        return []

    def _write(self, endings: Sequence[Ending]) -> None:
        with self.stages.timed("complete"):
            endings = circuit_breaker.blame(endings)
            away = self._heard(endings)
            complete([one.spared if one.spared and one.destination in away else one for one in endings])
        if away:
            self.hand_back(away)
        self._release(endings)

    def _abandon(self, ending: Ending) -> None:
        self._heartbeat.drop([ending.lease])

    def _heard(self, endings: Sequence[Ending]) -> set[str]:
        """The destinations that are parked, with this news. A fault of the breaker's must not keep work from its end."""
        try:
            return circuit_breaker.record(endings)
        except Exception as error:  # noqa: BLE001 - as above; when the database is away, the completion says so
            log_event("park", level="error", error=error_text(error), reason="the circuit breaker was not updated")
            return set()

    def _release(self, endings: Sequence[Ending]) -> None:
        """Let their leases go, and tell the workers of this host that more of a limit may run at once. (Others look each second.)"""
        self._heartbeat.drop(ending.lease for ending in endings)
        if any(ending.frees_place for ending in endings):
            wake_up.notify("claim")
