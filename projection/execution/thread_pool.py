"""The executor of plain flows: a bounded pool of threads, bounded per destination, so that one slow target does not slow the rest.

A flow past its time-out is recorded as timed out and its thread is given up. An attempt whose rate limit gave it a moment to start at
waits for it without a thread. Joins no transaction; methods without another word are called with the lock held.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final

from projection.execution.attempts import Attempt, failure, hand_back
from projection.execution.stuck_threads import give_up
from projection.execution.waiting import Waiting
from projection.leases import Ending
from projection.limits import starts
from projection.limits.destinations import destination_of

THREADS: Final = 8
"""Flows of one process that wait on the network at once; each may hold a database connection. No more is claimed while so many attempts
are unstarted: nobody else can run what waits here."""
MOST_UNSTARTED: Final = 400
"""Above it nothing is claimed, whoever it is for: each is a lease that this process keeps."""


class FlowTimeout(TimeoutError):
    """The flow ran longer than its time-out; its attempt counts as failed although its thread may still run."""


class ThreadPool:
    """The pool of one worker process.

    A runner takes attempts of one destination, one after another, until none is left: fast flows cost no hand-over between threads.
    `run` runs an attempt, without the lock: its ending, or None when it has ended itself. `ended` takes what has ended. `stuck` counts
    threads given up to flows that did not return in time; a process with any of them should end when it can. Once a flow ran into its
    time-out, what has not started is handed back: it must not pile up behind threads that do not return.
    """

    def __init__(
        self, changed: threading.Condition, run: Callable[[Attempt], Ending | None], ended: Callable[[Sequence[Ending]], None]
    ) -> None:
        self.stuck = 0
        self.in_doubt: set[str] = set()
        """Destinations with an outage that is not written yet: until it is known whether they are away, nothing more of them starts."""
        self._changed, self._run, self._ended = changed, run, ended
        self._threads: ThreadPoolExecutor | None = None
        self._queues: dict[str, deque[Attempt]] = {}
        self._later = Waiting()
        """What may not start yet."""
        self._runners: Counter[str] = Counter()
        self._running: dict[threading.Thread, tuple[Attempt, float]] = {}
        """Runner → what it runs, and since when (monotonic seconds)."""

    # ---- the dispatcher's side

    def submit(self, attempts: Sequence[Attempt]) -> None:
        self._later.add(attempts)
        self.start_runners()

    def take_back(self, destinations: Collection[str] | None = None) -> list[Attempt]:
        names = list(self._queues) if destinations is None else destinations
        queued = [attempt for name in names for attempt in self._queues.pop(name, ())]
        return queued + self._later.take_back(destinations)

    def seconds(self, most: float) -> float:
        return self._later.seconds(most)

    def is_idle(self) -> bool:
        return not (any(self._queues.values()) or self._running or self._later)

    def has_room(self) -> bool:
        """Whether so few attempts are unstarted that more may be claimed for any destination."""
        return self.unstarted() < THREADS and not self.busy()

    def has_idle_threads(self) -> bool:
        """Whether a thread is free that none of the unstarted attempts may use, so that other destinations' work could run."""
        return self._runners.total() < THREADS and self.unstarted() + len(self._later) < MOST_UNSTARTED

    def busy(self) -> list[str]:
        """Destinations that have so many unstarted attempts here that more of them should be left to other workers."""
        return [name for name, queue in self._queues.items() if len(queue) >= starts.A_DESTINATION]

    def unstarted(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def give_up_late_ones(self) -> None:
        """Record attempts past their time-out; their threads are left behind with their pool."""
        now = monotonic()
        late = [runner for runner, (attempt, since) in self._running.items() if now - since > attempt.flow.timeout]
        for runner in late:
            attempt, _ = self._running.pop(runner)
            give_up(runner)
            reason = f"the flow ran longer than its timeout of {attempt.flow.timeout:g} s"
            self._runners[destination_of(attempt.claimed.route)] -= 1
            self._ended([failure(attempt, FlowTimeout(reason), "timeout")])
        if late:
            self.stuck += len(late)
            self._threads = None
            self._ended([hand_back(attempt) for attempt in self.take_back()])

    def close(self) -> None:
        """End the pool, once nothing runs but stuck threads. Without the lock."""
        if self._threads is not None:
            self._threads.shutdown(wait=self.stuck == 0, cancel_futures=True)
            self._threads = None

    # ---- the runners' side

    def start_runners(self) -> None:
        for _, _, attempt in self._later.take_due():
            self._queues.setdefault(destination_of(attempt.claimed.route), deque()).append(attempt)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="flow")
        busy = Counter(destination_of(attempt.claimed.route) for attempt, _ in self._running.values())
        for destination, queue in self._queues.items():
            # The others are about to take one each: those that are busy may be so for long.
            while (
                len(queue) > self._runners[destination] - busy[destination]
                and starts.destination_allows(self._runners[destination], is_in_doubt=destination in self.in_doubt)
                and self._runners.total() < THREADS
            ):
                self._runners[destination] += 1
                self._threads.submit(self._run_destination, destination)

    def _run_destination(self, destination: str) -> None:
        """Body of a runner, without the lock. A runner that was given up finds itself forgotten, and its late result is dropped."""
        runner = threading.current_thread()
        attempt = self._next(destination, runner)
        while attempt is not None:
            ending = self._run(attempt)
            with self._changed:
                if self._running.pop(runner, None) is None:
                    return
                if ending is not None:
                    self._ended([ending])
            attempt = self._next(destination, runner)

    def _next(self, destination: str, runner: threading.Thread) -> Attempt | None:
        with self._changed:
            queue = self._queues.get(destination)
            if not queue or destination in self.in_doubt:
                self._runners[destination] -= 1
                self.start_runners()  # another destination may have waited for this thread
                self._changed.notify_all()
                return None
            attempt = queue.popleft()
            self._running[runner] = (attempt, monotonic())
            if self.unstarted() == THREADS - 1 or len(queue) == starts.A_DESTINATION - 1:
                self._changed.notify_all()  # there is room again
            return attempt
