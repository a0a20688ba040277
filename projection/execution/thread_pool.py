"""Plain flows side by side: a bounded pool of threads, bounded per destination, so that one slow target does not slow the rest.

The pool outlives a batch: the worker claims the next one while flows run and endings are written, by a keeper thread with a connection
of its own. Joins no transaction. A flow past its time-out is recorded as timed out and its thread is given up. An attempt whose rate
limit gave it a moment to start at waits for it without a thread.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final

from django.db import connection

from projection.database.outages import is_connection_lost, is_database_away
from projection.database.transactions import is_conflict
from projection.execution.attempts import Attempt, failure, hand_back
from projection.execution.stuck_threads import give_up
from projection.facts import Outage
from projection.leases import Ending
from projection.limits.destinations import AT_ONCE, destination_of
from projection.logs import log_event
from projection.safe_text import error_text

THREADS: Final = 8
"""Flows of one process that wait on the network at once; each may hold a database connection. No more is claimed while so many attempts
are unstarted: nobody else can run what waits here."""
THREADS_A_DESTINATION: Final = AT_ONCE
"""Also the number of unstarted attempts from which on a destination is busy: no more is claimed for it while others have room."""
MOST_UNSTARTED: Final = 400
"""Above it nothing is claimed, whoever it is for: each is a lease that this process keeps."""
TICK_SECONDS: Final = 0.2
"""How often time-outs are looked at while flows run, and the worker's stop flag while it waits for them."""
FLUSH_SECONDS: Final = 0.25
"""An ending waits at most about this long for company before it is written."""
FLUSH_ITEMS: Final = 100
"""Nor does it wait once there are so many."""
LONGEST_BACKOFF_SECONDS: Final = 5.0
"""Ceiling of the pause between two tries to write endings while the database is away; their leases may run out meanwhile."""
CLOSING_SECONDS: Final = 10.0
"""How long a pool that closes still tries to write endings; then their leases run out, and the items run again elsewhere."""


class FlowTimeout(TimeoutError):
    """The flow ran longer than its time-out; its attempt counts as failed although its thread may still run."""


class SideBySide:
    """The pool of one worker process.

    A runner takes attempts of one destination, one after another, until none is left: fast flows cost no hand-over between threads.
    `run` runs an attempt: its ending, or None when it has ended itself. `write` ends attempts in the database; what it raises is tried
    again (conflict, database away), or one by one, so that the one at fault fails alone and goes to `abandon`. `stuck` counts threads
    given up to flows that did not return in time; a process with any of them should end when it can. Once a flow ran into its time-out,
    what has not started is handed back: it must not pile up behind threads that do not return.
    """

    def __init__(
        self,
        run: Callable[[Attempt], Ending | None],
        write: Callable[[Sequence[Ending]], object],
        abandon: Callable[[Ending], object],
    ) -> None:
        self.stuck = 0
        self._run, self._write, self._abandon = run, write, abandon
        self._pool: ThreadPoolExecutor | None = None
        self._keeper: threading.Thread | None = None
        self._changed = threading.Condition()
        self._queues: dict[str, deque[Attempt]] = {}
        self._later: list[tuple[float, int, Attempt]] = []
        """Heap of what may not start yet: (moment, number, attempt)."""
        self._numbers = itertools.count()
        self._runners: Counter[str] = Counter()
        self._running: dict[threading.Thread, tuple[Attempt, float]] = {}
        """Runner → what it runs, and since when (monotonic seconds)."""
        self._suspects: set[str] = set()
        """Destinations with an outage that is not written yet: until it is known whether they are away, nothing more of them starts."""
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

    def submit(self, attempts: Sequence[Attempt], endings: Sequence[Ending] = ()) -> None:
        """Run all attempts as threads get free; `endings` of attempts that need no run are written with theirs."""
        with self._changed:
            for attempt in attempts:
                heapq.heappush(self._later, (attempt.claimed.starts_at, next(self._numbers), attempt))
            for ending in endings:
                self._add(ending)
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
                self._keeper.start()
            self._start_runners()
            self._changed.notify_all()

    def wait_for_room(self, seconds: float) -> bool:
        """Whether so few attempts are unstarted, within this time, that more may be claimed for any destination."""
        with self._changed:
            return self._changed.wait_for(lambda: self._unstarted() < THREADS and not self._busy(), seconds)

    def has_idle_threads(self) -> bool:
        """Whether a thread is free that none of the unstarted attempts may use, so that other destinations' work could run."""
        with self._changed:
            return self._runners.total() < THREADS and self._unstarted() + len(self._later) < MOST_UNSTARTED

    def busy(self) -> list[str]:
        """Destinations that have so many unstarted attempts here that more of them should be left to other workers."""
        with self._changed:
            return self._busy()

    def wait_until_done(self, seconds: float) -> bool:
        """Whether everything that was submitted has been written, within this time."""
        with self._changed:
            return self._changed.wait_for(self._is_done, seconds)

    def hand_back_unstarted(self) -> None:
        """Give back what has not started, as a worker does that stops."""
        with self._changed:
            self._hand_back_unstarted()
            self._changed.notify_all()

    def hand_back(self, destinations: Collection[str]) -> None:
        """Give back what has not started for these destinations: they are away."""
        with self._changed:
            for name in destinations:
                for attempt in self._queues.pop(name, ()):
                    self._add(hand_back(attempt))
            if destinations:
                away = [one for one in self._later if destination_of(one[2].claimed.route) in destinations]
                self._later = [one for one in self._later if one not in away]
                heapq.heapify(self._later)
                for _, _, attempt in away:
                    self._add(hand_back(attempt))
                self._changed.notify_all()

    @property
    def is_broken(self) -> bool:
        """Whether the process should be replaced: a flow did not return in time, or the keeper died of a fault of ours."""
        return self.stuck > 0 or (self._keeper is not None and self._closed_at is None and not self._keeper.is_alive())

    def close(self) -> None:
        """Bring everything to its end, but stuck threads, then end the pool."""
        with self._changed:
            self._closed_at = monotonic()
            self._changed.notify_all()
        if self._keeper is not None:
            self._keeper.join()
        if self._pool is not None:
            self._pool.shutdown(wait=self.stuck == 0, cancel_futures=True)
            self._pool = None

    # ---- the runners' side

    def _start_runners(self) -> None:
        now = monotonic()
        while self._later and self._later[0][0] <= now:
            attempt = heapq.heappop(self._later)[2]
            self._queues.setdefault(destination_of(attempt.claimed.route), deque()).append(attempt)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="flow")
        busy = Counter(destination_of(attempt.claimed.route) for attempt, _ in self._running.values())
        for destination, queue in self._queues.items():
            if destination in self._suspects:
                continue
            # The others are about to take one each: those that are busy may be so for long.
            while (
                len(queue) > self._runners[destination] - busy[destination]
                and self._runners[destination] < THREADS_A_DESTINATION
                and self._runners.total() < THREADS
            ):
                self._runners[destination] += 1
                self._pool.submit(self._run_destination, destination)

    def _run_destination(self, destination: str) -> None:
        """Body of a runner. A runner that was given up finds itself forgotten, and its late result is dropped."""
        runner = threading.current_thread()
        attempt = self._next(destination, runner)
        while attempt is not None:
            ending = self._run(attempt)
            with self._changed:
                if self._running.pop(runner, None) is None:
                    return
                if ending is not None:
                    self._add(ending)
            attempt = self._next(destination, runner)

    def _next(self, destination: str, runner: threading.Thread) -> Attempt | None:
        with self._changed:
            queue = self._queues.get(destination)
            if not queue or destination in self._suspects:
                self._runners[destination] -= 1
                self._start_runners()  # another destination may have waited for this thread
                self._changed.notify_all()
                return None
            attempt = queue.popleft()
            self._running[runner] = (attempt, monotonic())
            if self._unstarted() == THREADS - 1 or len(queue) == THREADS_A_DESTINATION - 1:
                self._changed.notify_all()  # there is room again
            return attempt

    # ---- the keeper's side

    def _keep(self) -> None:
        """Body of the keeper: look at time-outs, write endings in batches, until closed and done."""
        try:
            while not self._is_over():
                if ended := self._wait_for_endings():
                    unwritten = self._write_all(ended)
                    with self._changed:
                        self._writing = False
                        self._ended[:0] = unwritten
                        self._suspects = {ending.destination for ending in self._ended if isinstance(ending.seen, Outage)}
                        self._start_runners()
                        self._changed.notify_all()
        finally:
            connection.close()

    def _wait_for_endings(self) -> list[Ending]:
        """The endings to be written now: none, when a tick is over before any are due."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_due() or (self._closed_at is not None and self._is_done()), self._pause())
            self._start_runners()
            stuck_before = self.stuck
            self._give_up_late_ones()
            if self.stuck > stuck_before:
                self._hand_back_unstarted()
            if not self._is_due():
                return []
            ended, self._ended, self._writing = self._ended, [], True
            return ended

    def _pause(self) -> float:
        """Seconds until the keeper must look again: a tick, or less when an attempt may start sooner."""
        return min(TICK_SECONDS, max(0.0, self._later[0][0] - monotonic())) if self._later else TICK_SECONDS

    def _is_over(self) -> bool:
        with self._changed:
            if self._closed_at is None:
                return False
            return self._is_done() or (self._failures > 0 and monotonic() - self._closed_at > CLOSING_SECONDS)

    def _is_due(self) -> bool:
        """Whether the endings have waited long enough for company: nothing runs that could join them, or time or number say so."""
        now = monotonic()
        if not self._ended or now < self._retry_at:
            return False
        return (
            bool(self._suspects)
            or not self._is_busy()
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
            if is_conflict(error) or is_database_away():
                self._failures += 1
                self._retry_at = monotonic() + min(LONGEST_BACKOFF_SECONDS, 0.1 * 2.0 ** min(self._failures, 10))
                return endings
            if len(endings) > 1:
                return [ending for one in endings for ending in self._write_all([one])]
            if is_connection_lost(error) and not again:
                return self._write_all(endings, again=True)
            log_event("complete", level="error", work_id=endings[0].work_id, reason="left to its lease")
            self._abandon(endings[0])
        self._failures, self._retry_at = 0, 0.0
        return []

    def _give_up_late_ones(self) -> None:
        """Record attempts past their time-out; their threads are left behind with their pool. The lock is held."""
        now = monotonic()
        late = [runner for runner, (attempt, since) in self._running.items() if now - since > attempt.flow.timeout]
        for runner in late:
            attempt, _ = self._running.pop(runner)
            give_up(runner)
            reason = f"the flow ran longer than its time-out of {attempt.flow.timeout:g} s"
            self._add(failure(attempt, FlowTimeout(reason), "timeout"))
            self._runners[destination_of(attempt.claimed.route)] -= 1
        if late:
            self.stuck += len(late)
            self._pool = None

    def _hand_back_unstarted(self) -> None:
        for attempt in [*itertools.chain(*self._queues.values()), *(one[2] for one in self._later)]:
            self._add(hand_back(attempt))
        self._queues.clear()
        self._later.clear()

    # ---- the lock is held

    def _add(self, ending: Ending) -> None:
        if not self._ended:
            self._oldest_ended = monotonic()
        self._ended.append(ending)
        if isinstance(ending.seen, Outage):
            self._suspects.add(ending.destination)
        if self._is_due():
            self._changed.notify_all()

    def _unstarted(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def _busy(self) -> list[str]:
        return [name for name, queue in self._queues.items() if len(queue) >= THREADS_A_DESTINATION]

    def _is_busy(self) -> bool:
        return any(self._queues.values()) or bool(self._running) or bool(self._later)

    def _is_done(self) -> bool:
        return not (self._is_busy() or self._ended or self._writing)
