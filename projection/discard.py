"""Discard: an operator sets a dead item aside. Its state stays `dead`, its evidence stays; one transaction of its own (protocol 5)."""

from __future__ import annotations

from dataclasses import dataclass

from projection.logs import log_event
from projection.models import WorkItem
from projection.refusals import Refused
from projection.retry_policy import storable
from projection.sending import execute, fetch
from projection.states import NONTERMINAL, State
from projection.units import run_unit

ACTOR_CHARACTERS = 150


@dataclass(frozen=True, slots=True)
class Discarded:
    work_id: str


def discard(work_id: str, *, actor: str, reason: str) -> Discarded | Refused:
    """Mark a dead item as discarded. Refused when it is missing, not dead, discarded already, or while its replay still runs.

    The item is locked before its replay is looked for, as replay does, so that the two never pass each other: while a replay runs
    nobody knows yet whether there is anything to set aside.
    """
    found = WorkItem.objects.filter(work_id=work_id).values_list("id", flat=True).first() if work_id.isascii() else None
    if found is None:
        return Refused(work_id, "not_found", f"There is no work item {work_id}.")
    outcome = run_unit("discard", lambda: _discard_locked(found, work_id, actor, reason))
    if isinstance(outcome, Discarded):
        log_event("discard", work_id=work_id, actor=actor, reason=reason)
    return outcome


def _discard_locked(id: int, work_id: str, actor: str, reason: str) -> Discarded | Refused:
    locked = WorkItem.objects.lock_work_items([id])
    if not locked:
        return Refused(work_id, "not_found", f"There is no work item {work_id} any more.")
    if locked[0].state is not State.DEAD:
        return Refused(work_id, "not_dead", f"It is {locked[0].state}; only dead work can be discarded.")
    for replay_work_id, state in fetch("read_replay_state", work_id=work_id):
        if state in NONTERMINAL:
            return Refused(work_id, "replay_running", f"Its replay {replay_work_id} is {state}; wait for it, or cancel it first.")
    if not execute("discard_work_item", id=id, actor=storable(actor)[:ACTOR_CHARACTERS], reason=storable(reason)):
        return Refused(work_id, "already_discarded", "It is discarded already.")
    return Discarded(work_id)
