"""Discard: an operator sets a dead item aside. Its state stays `dead`, its evidence stays; one transaction of its own (protocol 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Refused
from projection.retry_policy import storable
from projection.sending import execute, fetch
from projection.states import NONTERMINAL, State
from projection.units import run_unit

ACTOR_CHARACTERS: Final = 150


@dataclass(frozen=True, slots=True)
class Discarded:
    work_id: str


def discard(work_id: str, *, actor: str, reason: str) -> Discarded | Refused:
    """Mark a dead item as discarded. Refused: `not_found`, `not_dead`, `already_discarded`, or `replay_running`.

    The item is locked before its replay is looked for, as replay does, so that the two never pass each other: while a replay runs
    nobody knows yet whether there is anything to set aside.
    """
    outcome = run_unit("discard", lambda: _discard(work_id, actor, reason))
    if isinstance(outcome, Discarded):
        log_event("discard", work_id=work_id, actor=actor, reason=reason)
    return outcome


def preview_discard(work_id: str) -> Discarded | Refused:
    """What `discard` would answer as things stand, without writing. Two queries."""
    found = _find(work_id)
    return _judge(work_id, found.state if found else None, is_discarded=bool(found and found.discarded_at))


def _find(work_id: str) -> WorkItem | None:
    return WorkItem.objects.filter(work_id=work_id).first() if work_id.isascii() else None


def _discard(work_id: str, actor: str, reason: str) -> Discarded | Refused:
    found = _find(work_id)
    locked = WorkItem.objects.lock_work_items([found.id]) if found else []
    outcome = _judge(work_id, locked[0].state if locked else None, is_discarded=False)
    if isinstance(outcome, Refused):
        return outcome
    if not execute("discard_work_item", id=locked[0].id, actor=storable(actor)[:ACTOR_CHARACTERS], reason=storable(reason)):
        return _judge(work_id, State.DEAD, is_discarded=True)
    return outcome


def _judge(work_id: str, state: str | None, *, is_discarded: bool) -> Discarded | Refused:
    if state is None:
        return Refused(work_id, "not_found", f"there is no work item {work_id}")
    if state != State.DEAD:
        return Refused(work_id, "not_dead", f"{work_id} is {state}; only dead work can be discarded")
    if is_discarded:
        return Refused(work_id, "already_discarded", f"{work_id} is discarded already")
    for replay_work_id, replay_state in fetch("read_replay_state", work_id=work_id):
        if replay_state in NONTERMINAL:
            return Refused(
                work_id, "replay_running", f"its replay {replay_work_id} is {replay_state}; wait for it, or cancel it first"
            )
    return Discarded(work_id)
