"""The claim worker: rescue, claim, execute, again, until nothing is due or it is told to stop.

`run_worker` and the resident django-q2 tasks both run this loop; any number of processes on any number of hosts is harmless.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, perf_counter, sleep

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from projection.claiming.claim import ClaimedBatch, claim
from projection.claiming.rescue import rescue
from projection.completion.complete import complete
from projection.execution.atomic_queue import InTurn, may_start
from projection.execution.attempts import Attempt, hand_back
from projection.execution.execute import prepare, run_atomic, run_plain
from projection.execution.heartbeat import Heartbeat, forget_silent_workers
from projection.execution.thread_pool import TICK_SECONDS, SideBySide
from projection.leases import Ending
from projection.limits import circuit_breaker
from projection.logs import log_event
from projection.runtime import wake_up
from projection.runtime.loop import POLL_SECONDS, resident
from projection.runtime.stop_flag import Stop, never
from projection.safe_text import error_text
from projection.states import State


class ClaimWorker:
    """One worker: a lease owner with a heartbeat and a pool of flow threads."""

    def __init__(self, heartbeat: Heartbeat, *, batch: int | None = None, stop: Stop = never) -> None:
        self._heartbeat = heartbeat
        self._batch = batch or settings.HEADRACE_WORKER_BATCH
        self._lease_seconds = settings.HEADRACE_LEASE_SECONDS
        self._stop = stop
        self._pool = SideBySide(self._run_plain, self._complete, self._abandon)
        self._in_turn = InTurn()
        self._rescued_at = float("-inf")
        self.next_due: float | None = None
        """Seconds until the earliest waiting item, as of the last claim that found nothing."""
        self._goes_on = False
        """Whether the last claim found nothing because there was too much closed work for one claim to set aside."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """Time spent so far in claim, input_read, execute (atomic flows, and waiting for plain ones) and complete (beside the others)."""

    def step(self) -> int:
        """Claim one batch, run its atomic flows and start its plain ones; number of items claimed.

        Plain flows go on while the next step claims, and atomic ones wait for their rate limit. While many plain ones have not started yet
        it claims for other destinations only, and none while they use all threads. The database's errors are raised; nothing is lost.
        """
        self._rescue_now_and_then()
        while True:
            self._run_in_turn()
            with self._timed("execute"):
                has_room = self._pool.wait_for_room(self.seconds_to_turn(TICK_SECONDS))  # quick flows never need so long
            if has_room:
                return self._claim()
            if self.is_stuck or self._stops():
                return 0
            if self._pool.has_idle_threads() and (taken := self._claim(self._pool.busy())):
                return taken

    def _claim(self, busy: Sequence[str] = ()) -> int:
        with self._timed("claim"):
            batch = claim(self._batch, owner=self._heartbeat.owner, lease_seconds=self._lease_seconds, busy=busy)
        self.next_due, self._goes_on = batch.next_due, batch.goes_on
        ids = batch.ids
        if ids:
            self._heartbeat.keep(ids, batch.token)
            self._execute(batch)
        return len(ids)

    def drain(self) -> int:
        """Step until nothing is due and nothing runs, or until told to stop; number of attempts made.

        A claim that finds nothing while something runs proves nothing: what ends meanwhile may have made other work due.
        """
        done = 0
        while not (self._stop() or self.is_stuck):
            was_idle = self._pool.wait_until_done(0) and not self._in_turn
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
            self._run_in_turn()
            with self._timed("execute"):
                is_done = self._pool.wait_until_done(self.seconds_to_turn(TICK_SECONDS))
            if is_done and not self._in_turn:
                return
            if is_done:
                sleep(self.seconds_to_turn(TICK_SECONDS))  # nothing signals that a moment has come

    def close(self) -> None:
        """Bring what was claimed to its end, once stopped only what has started, then end the pool of flow threads.

        What still waits for its rate limit is handed back.
        """
        self._stops()
        self._hand_back_in_turn()
        self._pool.close()

    def seconds_to_turn(self, most: float) -> float:
        """Until an atomic flow may start that waits for its rate limit, at most `most`."""
        return self._in_turn.seconds(most)

    @property
    def is_stuck(self) -> bool:
        """Whether a flow did not return in time: the process should be replaced."""
        return self._pool.is_broken

    def _stops(self) -> bool:
        """Whether the worker is told to stop; then what has not started is handed back. (The flag belongs to this thread.)"""
        if not self._stop():
            return False
        self._pool.hand_back_unstarted()
        self._hand_back_in_turn()
        return True

    def _hand_back_in_turn(self) -> None:
        self._pool.submit((), [hand_back(attempt) for attempt in self._in_turn.take_back()])

    def _execute(self, batch: ClaimedBatch) -> None:
        try:
            with self._timed("input_read"):
                attempts, broken = prepare(batch, self._heartbeat.owner)
        except BaseException:
            self._heartbeat.drop((id, batch.token) for id in batch.ids)  # nobody runs them here: their leases run out
            raise
        if self._stop():
            self._pool.submit((), [*broken, *map(hand_back, attempts)])
            return
        self._pool.submit([attempt for attempt in attempts if not attempt.flow.atomic], broken)
        self._in_turn.add([attempt for attempt in attempts if attempt.flow.atomic])
        self._run_in_turn()

    def _run_in_turn(self) -> None:
        """Run the atomic flows whose moment has come. What goes wrong in the database is raised; their leases run out then."""
        groups = self._in_turn.due()
        try:
            with self._timed("execute"):
                for group in groups:
                    starts = [(attempt, may_start(attempt)) for attempt in group]
                    self._pool.submit((), [hand_back(attempt) for attempt, may in starts if not may])
                    ready = [attempt for attempt, may in starts if may]
                    ended = run_atomic(ready, started=self._started_atomic, stop=self._stop)
                    self._ended([ending for one in ended for ending in one.written])
        finally:
            self._heartbeat.watch(None)
            self._heartbeat.drop(attempt.lease for group in groups for attempt in group)

    def _run_plain(self, attempt: Attempt) -> Ending | None:
        try:
            starts = may_start(attempt)
        except (DatabaseError, InterfaceError):  # nobody knows; the next claim asks again
            starts = False
        if not starts:
            return hand_back(attempt)
        self._started(attempt)
        ending = run_plain(attempt)
        if ending is None:
            self._heartbeat.drop([attempt.lease])
            self._ended([attempt.ending(State.PROCESSED)])
        return ending

    def _complete(self, endings: Sequence[Ending]) -> None:
        with self._timed("complete"):
            away = self._heard(endings)
            complete([one.spared if one.spared and one.destination in away else one for one in endings])
        self._pool.hand_back(away)
        self._pool.submit((), [hand_back(attempt) for attempt in self._in_turn.take_back(away)])
        self._heartbeat.drop(ending.lease for ending in endings)
        self._give_places(endings)

    def _ended(self, endings: Sequence[Ending]) -> None:
        """Attempts that have written their own end."""
        self._heard(endings)
        self._give_places(endings)

    @staticmethod
    def _give_places(endings: Iterable[Ending]) -> None:
        """Tell the workers of this host that more of a limit may run at once. (Those of other hosts look each second.)"""
        if any(ending.frees_place for ending in endings):
            wake_up.notify("claim")

    def _heard(self, endings: Sequence[Ending]) -> set[str]:
        """The destinations that are parked, with this news. A fault of the breaker's must not keep work from its end."""
        try:
            return circuit_breaker.record(endings)
        except Exception as error:  # noqa: BLE001 - as above; when the database is away, the completion says so
            log_event("park", level="error", error=error_text(error), reason="the breaker was not told")
            return set()

    def _abandon(self, ending: Ending) -> None:
        self._heartbeat.drop([ending.lease])

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        since = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += perf_counter() - since

    def _started(self, attempt: Attempt) -> None:
        self._heartbeat.started(attempt.lease, attempt.flow.timeout)

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
