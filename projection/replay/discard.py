"""Discard and restore: an operator sets dead items aside, and takes that back. Their state stays `dead`, their evidence stays; one
transaction of its own (docs/protocol.md#discard).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from projection.database.catalogue import execute, fetch
from projection.database.transactions import run_unit
from projection.inputs.replay_chains import read_rows
from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.decision import not_found
from projection.retention.erasure import erased_refusal, erased_work
from projection.rows import WorkRow
from projection.safe_text import storable, storable_actor
from projection.states import NONTERMINAL, State


@dataclass(frozen=True, slots=True)
class Discarded:
    work_id: str


@dataclass(frozen=True, slots=True)
class Restored:
    work_id: str


def discard(
    work_id: str, *, actor: str, reason: str, note: Callable[[Discarded | Refused], object] | None = None
) -> Discarded | Refused:
    """Mark a dead item as discarded. Refused: `not_found`, `not_dead`, `already_discarded`, or `replay_running`.

    The item is locked before its replay is looked for, as replay does, so that the two never pass each other: while a replay runs
    nobody knows yet whether there is anything to set aside. `note` as in `run_unit`.
    """
    outcome = run_unit("discard", lambda: discard_locked([work_id], actor=actor, reason=reason)[work_id], note=note)
    log_discards([outcome], actor=actor, reason=reason)
    return outcome


def discard_locked(work_ids: Sequence[str], *, actor: str, reason: str) -> dict[str, Discarded | Refused]:
    """As `discard`, for several (some hundreds at most) in the caller's transaction. Four statements, whatever their number."""
    ids = _read_ids(work_ids)
    locked = {row.work_id: row for row in WorkItem.objects.lock_work_items(ids.values())} if ids else {}
    outcomes = _judge(work_ids, locked)
    dead = tuple(locked[work_id].id for work_id, outcome in outcomes.items() if isinstance(outcome, Discarded))
    if dead:
        execute("discard_work_items", ids=dead, actor=storable_actor(actor), reason=storable(reason))
    return outcomes


def restore(
    work_ids: Sequence[str], *, actor: str, reason: str, note: Callable[[Mapping[str, Restored | Refused]], object] | None = None
) -> dict[str, Restored | Refused]:
    """Take discards back (some hundreds at most): the dead letters are open again, and can be replayed. Four statements.

    Refused: `not_found`, `not_dead`, `not_discarded`, `erased`. `note` as in `run_unit`.
    """
    outcomes = run_unit("restore", lambda: _restore_locked(work_ids), note=note)
    for outcome in outcomes.values():
        if isinstance(outcome, Restored):
            log_event("restore", work_id=outcome.work_id, actor=actor, reason=reason)
    return outcomes


def preview_restores(work_ids: Sequence[str]) -> dict[str, Restored | Refused]:
    """What `restore` would answer as things stand, without writing."""
    ids = _read_ids(work_ids)
    return _judge_restores(work_ids, {row.work_id: row for row in read_rows(ids.values()).values()})


def _restore_locked(work_ids: Sequence[str]) -> dict[str, Restored | Refused]:
    ids = _read_ids(work_ids)
    locked = {row.work_id: row for row in WorkItem.objects.lock_work_items(ids.values())} if ids else {}
    outcomes = _judge_restores(work_ids, locked)
    discarded = tuple(locked[work_id].id for work_id, outcome in outcomes.items() if isinstance(outcome, Restored))
    if discarded:
        execute("restore_work_items", ids=discarded)
    return outcomes


def _judge_restores(work_ids: Sequence[str], rows: Mapping[str, WorkRow]) -> dict[str, Restored | Refused]:
    erased = erased_work(row for row in rows.values() if row.discarded_at is not None)
    return {work_id: judge_restore(work_id, row := rows.get(work_id), row is not None and row.id in erased) for work_id in work_ids}


def judge_restore(work_id: str, row: WorkRow | None, is_erased: bool) -> Restored | Refused:
    """Whether the discard of an item, as it is, may be taken back; `is_erased`: its events are tombstones, so it cannot run."""
    if row is None:
        return not_found(work_id)
    if row.state is not State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {row.state}; only discarded dead letters can be restored")
    if row.discarded_at is None:
        return Refused(work_id, "not_discarded", f"{work_id} is not discarded")
    return erased_refusal(work_id) if is_erased else Restored(work_id)


def preview_discards(work_ids: Sequence[str]) -> dict[str, Discarded | Refused]:
    """What `discard` would answer as things stand, without writing. Three queries, whatever their number (a thousand at most)."""
    ids = _read_ids(work_ids)
    return _judge(work_ids, {row.work_id: row for row in read_rows(ids.values()).values()})


def log_discards(outcomes: Iterable[object], *, actor: str, reason: str) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Discarded):
            log_event("discard", work_id=outcome.work_id, actor=actor, reason=reason)


def _read_ids(work_ids: Sequence[str]) -> dict[str, int]:
    known = [work_id for work_id in work_ids if work_id.isascii()]  # no WorkId is anything else, and the column takes none
    return dict(WorkItem.objects.filter(work_id__in=known).values_list("work_id", "id"))


def _judge(work_ids: Sequence[str], rows: Mapping[str, WorkRow]) -> dict[str, Discarded | Refused]:
    replays = {of: (work_id, state) for of, work_id, state in fetch("read_replay_states", work_ids=tuple(rows))} if rows else {}
    return {work_id: judge_discard(work_id, rows.get(work_id), replays.get(work_id)) for work_id in work_ids}


def judge_discard(work_id: str, row: WorkRow | None, replay: tuple[str, str] | None) -> Discarded | Refused:
    """Whether an item, as it is, may be set aside beside its replay (WorkId, state), if it has one."""
    if row is None:
        return not_found(work_id)
    if row.state is not State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {row.state}; only dead letters can be discarded")
    if row.discarded_at is not None:
        return Refused(work_id, "already_discarded", f"{work_id} is already discarded")
    if replay is not None and replay[1] in NONTERMINAL:
        return Refused(work_id, "replay_running", f"its replay {replay[0]} is {replay[1]}; wait for it or cancel it first")
    return Discarded(work_id)
