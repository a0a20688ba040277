"""The claim worker: rescue, claim, execute, again, until nothing is due or it is told to stop.

`run_worker` and the resident django-q2 tasks both run this loop; any number of processes on any number of hosts is harmless.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Final

from django.conf import settings

from projection.claim import claim
from projection.complete import Ending, complete
from projection.execute import Attempt, prepare, run_atomic
from projection.flow_transactions import forget_connection
from projection.heartbeat import Heartbeat, forget_silent_workers
from projection.logs import log_event
from projection.rescue import rescue
from projection.retry_policy import error_text
from projection.side_by_side import SideBySide
from projection.wake import Listener

POLL_SECONDS: Final = 1.0
"""Longest sleep of an idle loop: what a missed wake-up costs."""
LONGEST_BACKOFF_SECONDS: Final = 15.0
"""Ceiling of the pause while the database is away."""

Stop = Callable[[], bool]


def never() -> bool:
    """The stop flag of a loop that only ends with its work."""
    return False


class ClaimWorker:
    """One worker: a lease owner with a heartbeat and a pool of flow threads."""

    def __init__(self, heartbeat: Heartbeat, *, batch: int | None = None, stop: Stop = never) -> None:
        self._heartbeat = heartbeat
        self._batch = batch or settings.HEADRACE_WORKER_BATCH
        self._lease_seconds = settings.HEADRACE_LEASE_SECONDS
        self._stop = stop
        self._pool = SideBySide(self._started)
        self._rescued_at = float("-inf")
        self.next_due: float | None = None
        """Seconds until the earliest waiting item, as of the last claim that found nothing."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """Time spent so far in claim, input_read, execute and complete."""

    def step(self) -> int:
        """Claim one batch and bring it to its end; number of items claimed. The database's errors are raised; nothing is lost by them."""
        self._rescue_now_and_then()
        with self._timed("claim"):
            batch = claim(self._batch, owner=self._heartbeat.owner, lease_seconds=self._lease_seconds)
        self.next_due = batch.next_due
        ids = batch.ids
        if not ids:
            return 0
        self._heartbeat.keep(ids, batch.token)
        try:
            with self._timed("input_read"):
                attempts, broken = prepare(batch, self._heartbeat.owner)
            self._complete(broken)
            with self._timed("execute"):
                self._execute(attempts)
        finally:
            self._heartbeat.drop(ids)
        return len(ids)

    def close(self) -> None:
        """End the pool of flow threads."""
        self._pool.close()

    @property
    def is_stuck(self) -> bool:
        """Whether a flow did not return in time: the process should be replaced."""
        return self._pool.stuck > 0

    def _execute(self, attempts: Sequence[Attempt]) -> None:
        self._pool.run([attempt for attempt in attempts if not attempt.flow.atomic], self._complete, self._stop)
        atomic: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            if attempt.flow.atomic:
                atomic.setdefault(attempt.flow.name, []).append(attempt)
        try:
            for group in atomic.values():
                run_atomic(group, started=self._started_atomic, stop=self._stop)
        finally:
            self._heartbeat.watch(None)

    def _complete(self, endings: Sequence[Ending]) -> None:
        if endings:
            with self._timed("complete"):
                complete(endings)
            self._heartbeat.drop(ending.item_id for ending in endings)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        since = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += perf_counter() - since

    def _started(self, attempt: Attempt) -> None:
        self._heartbeat.started(attempt.claimed.item.id, attempt.flow.timeout)

    def _started_atomic(self, attempt: Attempt) -> None:
        self._started(attempt)
        self._heartbeat.watch(attempt.flow.timeout)

    def _rescue_now_and_then(self) -> None:
        """A third of a lease apart, so that a lost worker's lanes move again within one lease time."""
        if monotonic() - self._rescued_at >= self._lease_seconds / 3:
            self._rescued_at = monotonic()
            rescue()
            forget_silent_workers()


def drain_claims(batch: int | None = None, *, stop: Stop = never) -> int:
    """Run everything that is due now; number of attempts made. Returns when a claim finds nothing."""
    done = 0
    with Heartbeat("worker", lease_seconds=settings.HEADRACE_LEASE_SECONDS) as heartbeat:
        worker = ClaimWorker(heartbeat, batch=batch, stop=stop)
        try:
            while not stop() and (count := worker.step()):
                done += count
        finally:
            worker.close()
    return done


def claim_loop(*, budget_seconds: float | None = None, batch: int | None = None, stop: Stop = never) -> int:
    """Claim and execute until the budget is over or `stop()`; woken by datagrams, else polling. Number of attempts made."""
    with Heartbeat("worker", lease_seconds=settings.HEADRACE_LEASE_SECONDS) as heartbeat:
        worker = ClaimWorker(heartbeat, batch=batch, stop=stop)

        def pause() -> float:
            return min(POLL_SECONDS, worker.next_due) if worker.next_due is not None else POLL_SECONDS

        try:
            return resident("claim", worker.step, pause, budget_seconds, lambda: stop() or worker.is_stuck)
        finally:
            worker.close()


def resident(kind: str, step: Callable[[], int], pause: Callable[[], float], budget_seconds: float | None, stop: Stop) -> int:
    """Repeat `step` while it finds work; sleep until a wake-up or `pause()` seconds when it does not. Number of things done.

    While the database is away it waits with a growing pause and says so in one line per try; nothing is lost meanwhile.
    """
    ends = monotonic() + budget_seconds if budget_seconds is not None else float("inf")
    done, failures = 0, 0
    with Listener("claim" if kind == "claim" else "route") as listener:
        while not stop() and monotonic() < ends:
            try:
                count = step()
                failures = 0
            except Exception as error:  # noqa: BLE001 - a resident loop outlives any single fault; it says so and tries again
                forget_connection()
                failures += 1
                wait = min(LONGEST_BACKOFF_SECONDS, 0.2 * 2.0 ** min(failures, 10))
                log_event(kind, level="error", error=error_text(error), seconds=wait, reason="trying again")
                listener.wait(wait)
                continue
            done += count
            if not count:
                listener.wait(max(0.005, pause()))
    return done
