"""Execute: hand claimed generations to their flows and bring each attempt to its end (docs/protocol.md#execute).

Plain flows run side by side in a bounded pool of threads, so that one slow target does not slow the rest; what they return is
completed in batches. Atomic flows run one after another and share a transaction with their completion: their writes commit with the
terminal state or not at all. Locks on work items come last, so a slow flow delays no admission, heartbeat or sibling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

from django.db import close_old_connections, transaction

from projection import flows
from projection.claiming.claim import ClaimedBatch
from projection.completion.complete import Ended, complete, end_attempts, log_ended
from projection.database.outages import is_connection_lost, is_database_away, is_outage, refuses_writes
from projection.database.transactions import is_conflict, run_unit
from projection.execution.attempts import Attempt, discreet, failure, hand_back
from projection.execution.failed import failed
from projection.execution.transaction_guard import nothing_left_open, own_savepoint
from projection.facts import Input
from projection.flows import Generation, LeaseLost
from projection.foreign_code import FAILURES
from projection.inputs.ranges import BrokenRange, read_inputs
from projection.leases import Claimed, Ending
from projection.limits import circuit_breaker
from projection.logs import log_event
from projection.safe_text import error_text
from projection.states import State

ATOMIC_GROUP_SECONDS: Final = 1.0
"""An atomic group that ran this long is completed before it goes on: a slow flow delays only itself."""


def prepare(batch: ClaimedBatch, owner: str) -> tuple[list[Attempt], list[Ending]]:
    """Attempts of a claimed batch with their inputs, and endings of items that cannot run (no route, a broken range).

    Two or three statements.
    """
    unreadable = [
        Ending(row, batch.token, State.DEAD, outcome="dead", error=reason, owner=owner) for row, reason in batch.unreadable
    ]
    try:
        inputs = read_inputs(batch.items)
    except BrokenRange:
        attempts, broken = _prepare_one_by_one(batch, owner)
    else:
        attempts, broken = [_attempt(one, batch.token, owner, inputs[one.item.id]) for one in batch.items], []
    if attempts:
        log_event("execute", count=len(attempts), events=sum(len(one.inputs) for one in attempts), worker=owner, rows=attempts)
    return attempts, unreadable + broken


def _attempt(one: Claimed, token: str, owner: str, inputs: Sequence[Input]) -> Attempt:
    flow = flows.find(one.route.flow_name)
    if flow is None:
        raise AssertionError(f"claimed an item of flow {one.route.flow_name}, which is not installed in this process")
    return Attempt(one, token, owner, flow, inputs)


def _prepare_one_by_one(batch: ClaimedBatch, owner: str) -> tuple[list[Attempt], list[Ending]]:
    """One item's range is broken: find it, so that its siblings run and it fails with the reason."""
    attempts: list[Attempt] = []
    broken: list[Ending] = []
    for one in batch.items:
        try:
            attempts.append(_attempt(one, batch.token, owner, read_inputs([one])[one.item.id]))
        except BrokenRange as error:
            broken.append(failure(_attempt(one, batch.token, owner, ()), error))
    return attempts, broken


def run_plain(attempt: Attempt) -> Ending | None:
    """Run a plain flow to its end; None when `generation.commit()` has ended the item already. Never raises."""
    generation = attempt.generation(_commit_tail(attempt))
    close_old_connections()  # the thread's own may have gone away while it was idle
    try:
        with nothing_left_open():
            flows.run(attempt.flow, [generation] if attempt.flow.batch else generation)
    except BaseException as error:  # noqa: BLE001 - every exception of a flow is an outcome of its attempt
        if generation.completed:
            log_event(
                "flow_failed_after_commit", level="warning", work_id=generation.work_id, error=discreet(attempt, error_text(error))
            )
            return None
        return failed(attempt, error, database_away=is_outage(error) and is_database_away(error))
    return None if generation.completed else attempt.ending(State.PROCESSED)


def _commit_tail(attempt: Attempt) -> flows.CommitFactory:
    @contextmanager
    def tail(_: Generation) -> Iterator[None]:
        with transaction.atomic(durable=True):
            with own_savepoint():
                yield
            ended = end_attempts([attempt.ending(State.PROCESSED)])
            if ended.lost:
                raise LeaseLost(f"the lease of {attempt.claimed.item.work_id} was lost")
        log_ended(ended)

    return tail


def _told(attempts: Sequence[Attempt], error: BaseException) -> str:
    """An error of some of these attempts for the log, without what it quotes of masked fields."""
    text = error_text(error)
    for attempt in attempts:
        text = discreet(attempt, text)
    return text


def run_atomic(
    attempts: Sequence[Attempt], *, started: Callable[[Attempt], None] = lambda _: None, stop: Callable[[], bool] = lambda: False
) -> list[Ended]:
    """Run atomic attempts of one flow, in as few transactions as they allow; each ends with its terminal state or not at all.

    Once `stop()` is true, what has not started is handed back. On a conflict code the flows of the transaction run again in the same
    attempt. An item whose lease was lost rolls everything of its transaction back; the others run again without it. After any other
    error of a transaction each attempt runs in one of its own, so that the one at fault fails alone; a connection that the server ended
    is not its fault before it happens again. Raises the database's error when it is away.
    """
    waiting = list(attempts)
    most = len(waiting)
    finished: list[Ended] = []
    interrupted = ""  # work id of the attempt whose connection was lost once
    while waiting:
        if stop():
            return [*finished, complete([hand_back(attempt) for attempt in waiting])]
        try:
            taken, ended = _run_group(waiting[:most], started)
        except _LostInUnit as lost:
            waiting = [attempt for attempt in waiting if attempt.claimed.item.work_id not in lost.work_ids]
            ended = Ended((), sorted(lost.work_ids))
        except Exception as error:
            if is_database_away(error):  # else one of the attempts is at fault
                raise
            if most > 1:
                log_event(
                    "execute", level="warning", count=len(waiting), error=_told(waiting, error), reason="its items run one by one"
                )
                most = 1
                continue
            if is_connection_lost(error) and waiting[0].claimed.item.work_id != interrupted:
                interrupted = waiting[0].claimed.item.work_id
                log_event("execute", level="warning", work_id=interrupted, error=_told(waiting[:1], error), state="again")
                continue
            finished.append(complete(circuit_breaker.blame([failed(waiting.pop(0), error)])))
            continue
        else:
            waiting = waiting[taken:]
        log_ended(ended)
        finished.append(ended)
    return finished


def _run_group(group: Sequence[Attempt], started: Callable[[Attempt], None]) -> tuple[int, Ended]:
    return run_unit("execute", lambda: _atomic_unit(group, started))


class _LostInUnit(Exception):
    """Leases of an atomic unit were lost: it rolls back whole, and the others run again without them."""

    def __init__(self, work_ids: Sequence[str]) -> None:
        super().__init__(", ".join(work_ids))
        self.work_ids = set(work_ids)


def _atomic_unit(attempts: Sequence[Attempt], started: Callable[[Attempt], None]) -> tuple[int, Ended]:
    """Flows in savepoints, then the completion; how many attempts were run, and what was written."""
    begun = monotonic()
    endings: list[Ending] = []
    if attempts[0].flow.batch and len(attempts) > 1:
        endings = _run_together(attempts, started)
    for attempt in attempts[len(endings) :]:
        started(attempt)
        endings.append(_run_in_savepoint(attempt))
        if monotonic() - begun >= ATOMIC_GROUP_SECONDS:
            break
    ended = end_attempts(circuit_breaker.blame(endings))
    if ended.lost:
        raise _LostInUnit(ended.lost)
    return len(endings), ended


def _run_together(attempts: Sequence[Attempt], started: Callable[[Attempt], None]) -> list[Ending]:
    """One call of a batch flow; no endings when it failed, so that each generation then runs alone and only the bad one fails."""
    for attempt in attempts:
        started(attempt)
    try:
        with own_savepoint():
            flows.run(attempts[0].flow, [attempt.generation() for attempt in attempts])
    except FAILURES as error:
        if _concerns_unit(error):
            raise
        return []
    return [attempt.ending(State.PROCESSED) for attempt in attempts]


def _run_in_savepoint(attempt: Attempt) -> Ending:
    generation = attempt.generation()
    try:
        with own_savepoint():
            flows.run(attempt.flow, [generation] if attempt.flow.batch else generation)
    except FAILURES as error:
        if _concerns_unit(error):
            raise
        return failed(attempt, error)
    return attempt.ending(State.PROCESSED)


def _concerns_unit(error: BaseException) -> bool:
    """The whole transaction is gone (conflict, lost connection) or cannot commit (read-only, full), not only this flow's savepoint."""
    return is_conflict(error) or is_connection_lost(error) or refuses_writes(error)
