"""The claim worker: rescue, claim, execute, again, until nothing is due or it is told to stop.

`run_worker` and the resident django-q2 tasks both run this loop; any number of processes on any number of hosts is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from django.conf import settings

from projection.claiming.claim import ClaimedBatch, claim
from projection.claiming.rescue import rescue
from projection.execution.attempts import hand_back
from projection.execution.dispatcher import Dispatcher
from projection.execution.execute import prepare
from projection.execution.heartbeat import Heartbeat, forget_silent_workers
from projection.runtime.loop import POLL_SECONDS, resident
from projection.runtime.stop_flag import Stop, never


class ClaimWorker:
    """One worker: a lease owner with a heartbeat and a dispatcher."""

    def __init__(self, heartbeat: Heartbeat, *, batch: int | None = None, stop: Stop = never) -> None:
        self._heartbeat = heartbeat
        self._batch = batch or settings.HEADRACE_WORKER_BATCH
        self._lease_seconds = settings.HEADRACE_LEASE_SECONDS
        self._stop = stop
        self._dispatcher = Dispatcher(heartbeat, stop=stop)
        self._rescued_at = float("-inf")
        self.next_due: float | None = None
        """Seconds until the earliest waiting item, as of the last claim that found nothing."""
        self._goes_on = False
        """Whether the last claim found nothing because there was too much blocked work for one claim to set aside."""
        self.seconds = self._dispatcher.stages
        """Time spent so far in claim, input_read, execute (atomic flows, and waiting for plain ones) and complete (beside the others)."""

    def step(self) -> int:
        """Claim one batch, run its atomic flows and start its plain ones; number of items claimed.

        Plain flows go on while the next step claims, and atomic ones wait for their rate limit. While many plain ones have not started yet
        it claims for other destinations only, and none while they use all threads. The database's errors are raised; nothing is lost.
        """
        self._rescue_now_and_then()
        while True:
            with self.seconds.timed("execute"):
                self._dispatcher.run_atomic()
                has_room = self._dispatcher.wait_for_room()  # quick flows never need so long
            if has_room:
                return self._claim()
            if self.is_stuck or self._stops():
                return 0
            busy = self._dispatcher.busy()
            if busy is not None and (taken := self._claim(busy)):
                return taken

    def _claim(self, busy: Sequence[str] = ()) -> int:
        batch = self._take(busy)
        if batch.needs_idle:  # it may kill this process, and must have nothing beside it that would be lost
            self.finish()
            if self.is_stuck or self._stops():
                return 0
            batch = self._take(busy)
        self.next_due, self._goes_on = batch.next_due, batch.goes_on
        ids = batch.ids
        if ids:
            self._heartbeat.keep(ids, batch.token)
            self._execute(batch)
        if batch.is_apart:
            self.finish()
        return len(ids)

    def _take(self, busy: Sequence[str]) -> ClaimedBatch:
        is_idle = self._dispatcher.wait_until_done(0)
        with self.seconds.timed("claim"):
            return claim(self._batch, owner=self._heartbeat.owner, lease_seconds=self._lease_seconds, busy=busy, is_idle=is_idle)

    def _execute(self, batch: ClaimedBatch) -> None:
        try:
            with self.seconds.timed("input_read"):
                attempts, broken = prepare(batch, self._heartbeat.owner)
        except BaseException:
            self._heartbeat.drop((id, batch.token) for id in batch.ids)  # nobody runs them here: their leases run out
            raise
        self._dispatcher.ended(broken)
        if self._stop():
            self._dispatcher.ended([hand_back(attempt) for attempt in attempts])
            return
        self._dispatcher.submit(attempts)
        with self.seconds.timed("execute"):
            self._dispatcher.run_atomic()

    def drain(self) -> int:
        """Step until nothing is due and nothing runs, or until told to stop; number of attempts made.

        A claim that finds nothing while something runs proves nothing: what ends meanwhile may have made other work due.
        """
        done = 0
        while not (self._stop() or self.is_stuck):
            was_idle = self._dispatcher.wait_until_done(0)
            count = self.step()
            done += count
            if not count and was_idle and not self._goes_on:
                break
            if not count:
                self.finish()
        return done

    def finish(self) -> None:
        """Wait until everything that was claimed has ended."""
        while not (self.is_stuck or self._stops()):
            with self.seconds.timed("execute"):
                self._dispatcher.run_atomic()
                if self._dispatcher.wait_until_done():
                    return

    def close(self) -> None:
        """Bring what was claimed to its end, once stopped only what has started.

        What still waits for its rate limit is handed back.
        """
        self._stops()
        self._dispatcher.close()

    def seconds_to_turn(self, most: float) -> float:
        """Until an atomic flow may start that waits for its rate limit, at most `most`."""
        return self._dispatcher.seconds_to_turn(most)

    @property
    def is_stuck(self) -> bool:
        """Whether a flow did not return in time: the process should be replaced."""
        return self._dispatcher.is_broken

    def _stops(self) -> bool:
        """Whether the worker is told to stop; then what has not started is handed back. (The flag belongs to this thread.)"""
        if not self._stop():
            return False
        self._dispatcher.hand_back()
        return True

    def _rescue_now_and_then(self) -> None:
        """A third of a lease apart, so that a lost worker's lanes move again within one lease time."""
        if monotonic() - self._rescued_at >= self._lease_seconds / 3:
            self._rescued_at = monotonic()
            rescue()
            forget_silent_workers()


def drain_claims(batch: int | None = None, *, stop: Stop = never) -> int:
    """Run everything that is due now; number of attempts made. Returns when a claim finds nothing and nothing runs."""
    with Heartbeat("worker", lease_seconds=settings.HEADRACE_LEASE_SECONDS) as heartbeat:
        worker = ClaimWorker(heartbeat, batch=batch, stop=stop)
        try:
            return worker.drain()
        finally:
            worker.close()


def claim_loop(*, budget_seconds: float | None = None, batch: int | None = None, stop: Stop = never) -> int:
    """Claim and execute until the budget is over or `stop()`; woken by datagrams, else polling. Number of attempts made."""
    with Heartbeat("worker", lease_seconds=settings.HEADRACE_LEASE_SECONDS) as heartbeat:
        worker = ClaimWorker(heartbeat, batch=batch, stop=stop)

        def pause() -> float:
            due = worker.next_due if worker.next_due is not None else POLL_SECONDS
            return worker.seconds_to_turn(min(POLL_SECONDS, due))

        try:
            return resident("claim", worker.step, pause, budget_seconds, lambda: stop() or worker.is_stuck)
        finally:
            worker.close()
