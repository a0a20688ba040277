"""Plain flows side by side: a bounded pool of threads, bounded per destination, so that one slow target does not slow the rest.

Joins no transaction. Endings come back in batches; a flow past its time-out is recorded as timed out and its thread is given up.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final

from projection.complete import Ending
from projection.execute import Attempt, failure, hand_back, run_plain
from projection.stuck import give_up

THREADS: Final = 8
"""Flows of one process that wait on the network at once; each may hold a database connection."""
THREADS_A_DESTINATION: Final = 4
TICK_SECONDS: Final = 0.2
"""How often time-outs and the stop flag are looked at while flows run."""
FLUSH_SECONDS: Final = 0.25
"""An ending waits about this long for company before it is written."""


class FlowTimeout(TimeoutError):
    """The flow ran longer than its time-out; its attempt counts as failed although its thread may still run."""


class SideBySide:
    """The pool of one worker process, reused from batch to batch.

    A runner takes attempts of one destination, one after another, until none is left: fast flows cost no hand-over between threads.
    `started` is called when a flow starts, before it runs: its time-out counts from here. `stuck` counts threads given up to flows
    that did not return in time; a process with any of them should end when it can.
    """

    def __init__(self, started: Callable[[Attempt], None]) -> None:
        self.stuck = 0
        self._started = started
        self._pool: ThreadPoolExecutor | None = None
        self._changed = threading.Condition()
        self._queues: dict[str, deque[Attempt]] = {}
        self._runners: Counter[str] = Counter()
        self._running: dict[threading.Thread, tuple[Attempt, float]] = {}
        """Runner → what it runs, and since when (monotonic seconds)."""
        self._ended: list[Ending] = []

    def run(self, attempts: Sequence[Attempt], flush: Callable[[Sequence[Ending]], object], stop: Callable[[], bool]) -> None:
        """Run all attempts; `flush` writes their endings in batches.

        Once `stop()` is true, or a flow ran into its time-out, what has not started is handed back: it must not wait for, or pile up
        behind, threads that do not return.
        """
        stuck_before = self.stuck
        for attempt in attempts:
            self._queues.setdefault(destination_of(attempt), deque()).append(attempt)
        last_flush = monotonic()
        busy = bool(attempts)
        while busy:
            if stop() or self.stuck > stuck_before:
                self._hand_back_unstarted()
            self._start_runners()
            with self._changed:
                self._changed.wait_for(lambda: not self._busy(), timeout=TICK_SECONDS)
                self._give_up_late_ones()
                busy = self._busy()
                ended: list[Ending] = []
                if not busy or monotonic() - last_flush >= FLUSH_SECONDS:
                    ended, self._ended = self._ended, []
            if ended:
                flush(ended)
                last_flush = monotonic()

    def _hand_back_unstarted(self) -> None:
        with self._changed:
            self._ended += [hand_back(attempt) for queue in self._queues.values() for attempt in queue]
            self._queues.clear()

    def _busy(self) -> bool:
        return any(self._queues.values()) or bool(self._running)

    def _start_runners(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="flow")
        with self._changed:
            for destination, queue in self._queues.items():
                while len(queue) > self._runners[destination] < THREADS_A_DESTINATION and self._runners.total() < THREADS:
                    self._runners[destination] += 1
                    self._pool.submit(self._run_destination, destination)

    def _run_destination(self, destination: str) -> None:
        """Body of a runner. A runner that was given up finds itself forgotten, and its late result is dropped."""
        runner = threading.current_thread()
        attempt = self._next(destination, runner)
        while attempt is not None:
            ending = run_plain(attempt)
            with self._changed:
                if self._running.pop(runner, None) is None:
                    return
                if ending is not None:
                    self._ended.append(ending)
            attempt = self._next(destination, runner)

    def _next(self, destination: str, runner: threading.Thread) -> Attempt | None:
        with self._changed:
            queue = self._queues.get(destination)
            if not queue:
                self._runners[destination] -= 1
                self._changed.notify()
                return None
            attempt = queue.popleft()
            self._running[runner] = (attempt, monotonic())
        self._started(attempt)
        return attempt

    def _give_up_late_ones(self) -> None:
        """Record attempts past their time-out; their threads are left behind with their pool. The lock is held."""
        now = monotonic()
        late = [runner for runner, (attempt, since) in self._running.items() if now - since > attempt.flow.timeout]
        for runner in late:
            attempt, _ = self._running.pop(runner)
            give_up(runner)
            reason = f"the flow ran longer than its time-out of {attempt.flow.timeout:g} s"
            self._ended.append(failure(attempt, FlowTimeout(reason), "timeout"))
            self._runners[destination_of(attempt)] -= 1
        if late:
            self.stuck += len(late)
            self._pool = None

    def close(self) -> None:
        """End the pool without waiting for stuck threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=self.stuck == 0, cancel_futures=True)
            self._pool = None


def destination_of(attempt: Attempt) -> str:
    """What the flow calls: its declared destination, else its route's connection, else the flow itself."""
    return attempt.flow.destination or attempt.claimed.route.connection or attempt.flow.name
