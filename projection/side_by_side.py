"""Plain flows side by side: a bounded pool of threads, bounded per destination, so that one slow target does not slow the rest.

Joins no transaction. Endings come back in batches; a flow past its time-out is recorded as timed out and its thread is given up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from projection.complete import Ending
from projection.execute import Attempt, failure, hand_back, run_plain

THREADS: Final = 8
"""Flows of one process that wait on the network at once; each may hold a database connection."""
THREADS_A_DESTINATION: Final = 4
TICK_SECONDS: Final = 0.2
"""How often time-outs and the stop flag are looked at while flows run."""
FLUSH_SECONDS: Final = 0.25
"""An ending waits at most this long for company before it is written."""


class FlowTimeout(TimeoutError):
    """The flow ran longer than its time-out; its attempt counts as failed although its thread may still run."""


@dataclass(slots=True)
class SideBySide:
    """The pool of one worker process, reused from batch to batch."""

    started: Callable[[Attempt], None]
    """Called when a flow starts, before it runs: its time-out counts from here."""
    stuck: int = 0
    """Threads given up to flows that did not return in time; a process with any of them should end when it can."""
    _pool: ThreadPoolExecutor | None = None
    _running: dict[Future[Ending | None], tuple[Attempt, float]] = field(default_factory=dict)

    def run(self, attempts: Sequence[Attempt], flush: Callable[[Sequence[Ending]], object], stop: Callable[[], bool]) -> None:
        """Run all attempts; `flush` writes their endings in batches.

        Once `stop()` is true, or a flow ran into its time-out, what has not started is handed back: it must not wait for, or pile up
        behind, threads that do not return.
        """
        stuck_before = self.stuck
        queues: dict[str, deque[Attempt]] = {}
        for attempt in attempts:
            queues.setdefault(destination_of(attempt), deque()).append(attempt)
        ended: list[Ending] = []
        last_flush = monotonic()
        while queues or self._running:
            if queues and (stop() or self.stuck > stuck_before):
                ended += [hand_back(attempt) for queue in queues.values() for attempt in queue]
                queues.clear()
            self._submit(queues)
            ended += self._collect()
            if ended and (not (queues or self._running) or monotonic() - last_flush >= FLUSH_SECONDS):
                flush(ended)
                ended, last_flush = [], monotonic()
        if ended:
            flush(ended)

    def _submit(self, queues: dict[str, deque[Attempt]]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="flow")
        busy = Counter(destination_of(attempt) for attempt, _ in self._running.values())
        for destination in list(queues):
            queue = queues[destination]
            while queue and busy[destination] < THREADS_A_DESTINATION and len(self._running) < THREADS:
                attempt = queue.popleft()
                busy[destination] += 1
                self.started(attempt)
                self._running[self._pool.submit(run_plain, attempt)] = (attempt, monotonic())
            if not queue:
                del queues[destination]

    def _collect(self) -> list[Ending]:
        done, _ = wait(self._running, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED)
        endings = [ending for future in done if (ending := future.result()) is not None]
        for future in done:
            del self._running[future]
        return endings + self._give_up_late_ones()

    def _give_up_late_ones(self) -> list[Ending]:
        now = monotonic()
        late = {future: attempt for future, (attempt, since) in self._running.items() if now - since > attempt.flow.timeout}
        for future in late:
            del self._running[future]
        if late:
            self.stuck += len(late)
            self._pool = None  # its threads are occupied; the next flows get fresh ones
        return [
            failure(attempt, FlowTimeout(f"the flow ran longer than its time-out of {attempt.flow.timeout:g} s"), "timeout")
            for attempt in late.values()
        ]

    def close(self) -> None:
        """End the pool without waiting for stuck threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=self.stuck == 0, cancel_futures=True)
            self._pool = None


def destination_of(attempt: Attempt) -> str:
    """What the flow calls: its declared destination, else its route's connection, else the flow itself."""
    return attempt.flow.destination or attempt.claimed.route.connection or attempt.flow.name
