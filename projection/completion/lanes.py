"""Lanes: which work may be claimed next (docs/protocol.md#lanes). Everything here joins its caller's transaction, but `hold` and
`release`.

`blocked` is written only under the lock of the live row that blocks, re-read after the lock; whatever ends a blocking row unblocks
the next of its lane in the same transaction. A settling row (`pending`, RunAfter ahead) blocks nothing and is never `blocked`, so
time alone changes no row. A `pending` row too many costs the claim one comparison; a `blocked` one too many would strand a lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from django.db import IntegrityError

from projection.database.catalogue import chunks, execute
from projection.database.clock import to_db
from projection.database.transactions import duplicate_key, run_unit
from projection.logs import log_event
from projection.models import WorkItem
from projection.rows import LaneRow, WorkRow
from projection.runtime.wake_up import notify
from projection.safe_text import storable, storable_actor
from projection.states import State

LANES_A_STATEMENT: Final = 256


def blocks(state: State, run_after: datetime, now: datetime) -> bool:
    """Whether a live row keeps later ones of its lane from running: it runs, waits to retry, or is due."""
    return state in (State.PROCESSING, State.RETRY) or (state is State.PENDING and run_after <= now)


def read_blockers(lanes: Iterable[str], now: datetime) -> dict[str, LaneRow]:
    """The first blocking row of each lane that has one, read without a lock: to be locked and checked again by `still_blocking`."""
    first: dict[str, LaneRow] = {}
    for chunk in chunks(sorted(set(lanes)), LANES_A_STATEMENT):
        for row in WorkItem.objects.read_unblocked_rows(chunk):
            known = first.get(row.lane_key)
            if blocks(row.state, row.run_after, now) and (known is None or (row.position, row.id) < (known.position, known.id)):
                first[row.lane_key] = row
    return first


def still_blocking(candidates: Iterable[LaneRow], locked: dict[int, WorkRow], now: datetime) -> dict[str, tuple[int, int]]:
    """(LanePosition, Id) of the blocking row per lane, for the candidates that still block now that their rows are locked."""
    found: dict[str, tuple[int, int]] = {}
    for candidate in candidates:
        row = locked.get(candidate.id)
        if row is not None and row.is_live and blocks(row.state, row.run_after, now):
            found[candidate.lane_key] = (row.lane_position, row.id)
    return found


def unblock_next(ended: Sequence[int], blocking: Mapping[str, tuple[int, int]] | None = None) -> int:
    """Make the first blocked row of each lane that one of the `ended` work items left claimable; number of rows unblocked.

    `blocking` names (LanePosition, Id) of rows that we hold locked and that block their lane from now on: what is behind them stays
    blocked. A candidate that ended while its lock was awaited is replaced by the next one, so that no lane is left stranded.
    """
    unblocked = 0
    waiting = list(ended)
    while waiting:
        candidates = {item: nxt for item, nxt in WorkItem.objects.read_next_blocked(waiting).items() if nxt is not None}
        if not candidates:
            break
        locked = {row.id: row for row in WorkItem.objects.lock_work_items(candidates.values())}
        ready = [row.id for row in locked.values() if row.state is State.BLOCKED and not _is_behind(row, blocking or {})]
        if ready:
            unblocked += WorkItem.objects.unblock_work_items(ready)
        waiting = [item for item, nxt in candidates.items() if nxt not in locked or not locked[nxt].is_nonterminal]
    return unblocked


def _is_behind(row: WorkRow, blocking: Mapping[str, tuple[int, int]]) -> bool:
    ahead = blocking.get(row.lane_key or "")
    return ahead is not None and ahead < (row.lane_position, row.id)


def hold(
    namespace: str,
    lane_key: str,
    lane: str,
    *,
    actor: str,
    reason: str,
    release_at: datetime | None = None,
    note: Callable[[None], object] | None = None,
) -> bool:
    """Keep a lane from being claimed until it is released, or until `release_at` (aware), by the database's clock.

    False when it is held already. A transaction of its own; `note` as in `run_unit`, called where it was not held.
    """
    texts = {"actor": storable_actor(actor), "reason": storable(reason)}
    ends = to_db(release_at)

    def insert() -> None:
        execute("delete_hold_that_is_over", lane_key=lane_key)
        execute("insert_hold", namespace=namespace, lane_key=lane_key, lane=lane, release_at=ends, **texts)

    try:
        run_unit("hold", insert, note=note)
    except IntegrityError as error:
        if duplicate_key(error) is None:
            raise
        return False
    log_event("hold", namespace=namespace, lane=lane, actor=actor, reason=reason)
    return True


def release(lane_key: str, *, actor: str, note: Callable[[bool], object] | None = None) -> bool:
    """Let a held lane be claimed again; False when it was not held. A transaction of its own; `note` as in `run_unit`."""
    released = run_unit("release", lambda: execute("delete_hold", lane_key=lane_key) == 1, note=note)
    if released:
        log_event("release", lane=lane_key, actor=actor)
        notify("claim")
    return released
