"""Why a work item is not running: the pure decision, from the item and what surrounds it, in one sentence (`why.py` reads it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from projection.cli import iso
from projection.facts import flow_name
from projection.limits.availability import Block
from projection.models import WorkItem
from projection.states import TERMINAL, State

ADD_APP: Final = "Add its app to HEADRACE_APPS and restart the workers."
ERROR_CHARACTERS: Final = 200
"""How much of an error a sentence quotes; the failure itself keeps it whole."""


@dataclass(frozen=True, slots=True)
class Why:
    """`code` is for programs, `sentence` for people; what the item waits for, and until when, where that is known."""

    code: str
    sentence: str
    blocking_work_id: str | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An item that another one waits for."""

    work_id: str
    state: str
    run_after: datetime
    lease_expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything outside the item that decides whether it may run."""

    now: datetime
    activated: bool = True
    paused: Block | None = None
    hold: tuple[str, datetime, str] | None = None
    """By whom, since when and why its lane is held."""
    hold_ends: datetime | None = None
    neighbours: Mapping[str, Neighbour] = field(default_factory=dict)
    """By role: `active` generation of its projection, `holder` of its lane, first due item `ahead` of it."""
    parked: Block | None = None
    limited: Block | None = None
    full: Block | None = None
    workers: int = 1
    flow_missing: bool = False
    """Known for certain: no live worker has the item's flow."""


def explain(item: WorkItem, around: Surroundings) -> Why:
    """The pure decision. What lasts until somebody acts comes before what time alone ends."""
    if item.state in TERMINAL:
        return _ended(item)
    if item.state == State.PROCESSING:
        return _processing(item, around.now)
    return (
        _stopped(item, around)
        or _behind(item, around)
        or _parked(item, around)
        or _waiting(item, around.now)
        or _unattended(item, around)
        or _limited(around)
        or _apart(item)
        or Why("due", f"Due since {iso(item.run_after)}; waiting for a free worker.", until=item.run_after)
    )


def _ended(item: WorkItem) -> Why:
    at = iso(item.terminal_at)
    because = f": {_quote(item.last_error)}" if item.last_error and item.state != State.PROCESSED else "."
    if item.discarded_at is not None:
        return Why("discarded", f"Dead letter since {at}, discarded by {item.discarded_by} at {iso(item.discarded_at)}{because}")
    if item.state == State.DEAD:
        return Why("dead", f"Dead letter since {at} after {_attempts(item)}{because}")
    return Why(item.state, f"{str(item.state).capitalize()} at {at}{because}")


def _processing(item: WorkItem, now: datetime) -> Why:
    lease = item.lease_expires_at
    if lease is not None and lease <= now:
        sentence = f"Worker {item.lease_owner} stopped responding (deadline {iso(lease)}); another worker will take over."
        return Why("lease_expired", sentence, until=lease)
    sentence = f"Running since {iso(item.claimed_at)} on {item.lease_owner}, attempt {item.attempts}."
    return Why("processing", sentence, until=lease)


def _stopped(item: WorkItem, around: Surroundings) -> Why | None:
    """What an operator must end."""
    if item.projection_key is not None and not around.activated:
        return Why("not_activated", "The projection protocol is not activated. Run `script/manage activate_projection`.")
    if around.paused is not None:
        return _paused(around.paused)
    if around.hold is not None:
        actor, since, reason = around.hold
        ends = f" Released automatically at {iso(around.hold_ends)}." if around.hold_ends else ""
        return Why(
            "held", _with_full_stop(f"Lane held by {actor} since {iso(since)}: {_quote(reason)}") + ends, until=around.hold_ends
        )
    return None


def _paused(pause: Block) -> Why:
    by = f" by {pause.by}" if pause.by else ""
    because = f": {_quote(pause.reason)}" if pause.reason else ""
    ends = f" Resumes automatically at {iso(pause.until)}." if pause.until else ""
    sentence = f"{pause.kind.capitalize()} {pause.name} paused{by} since {iso(pause.since)}{because}"
    return Why("paused", _with_full_stop(sentence) + ends, until=pause.until)


def _with_full_stop(sentence: str) -> str:
    """The sentence with a full stop, whatever its quoted reason ends with."""
    return sentence if sentence.endswith(".") else f"{sentence}."


def _parked(item: WorkItem, around: Surroundings) -> Why | None:
    """Its destination is away for longer than the item itself waits."""
    parked = around.parked
    if parked is None or parked.until is None or parked.until <= item.run_after:
        return None
    since = f" since {iso(parked.since)}" if parked.since else ""
    sentence = f"Destination {parked.name} is parked (circuit open){since} until {iso(parked.until)}: {_quote(parked.reason)}"
    return Why("parked", sentence, until=parked.until)


def _limited(around: Surroundings) -> Why | None:
    if around.full is not None:
        return Why(
            "limited", f"Concurrency limit {around.full.name} reached: {around.full.number} of {around.full.number} running."
        )
    limit = around.limited
    if limit is None:
        return None
    per = "per second" if limit.seconds == 1 else f"per {limit.seconds:g} s"
    sentence = f"Rate limit {limit.name} reached: {limit.number} starts {per}"
    return Why("limited", f"{sentence}, next start at {iso(limit.until)}.", until=limit.until)


def _behind(item: WorkItem, around: Surroundings) -> Why | None:
    """What comes before it: the active generation of its projection, or its lane."""
    active = around.neighbours.get("active")
    if item.projection_key is not None and item.projection_active_key is None:
        if active is None:
            return Why("handoff_lost", "Waiting for an active generation, but there is none. Run `script/manage repair`.")
        return Why("queued", f"Waiting for generation {active.work_id}, {_doing(active)}.", active.work_id, _until(active))
    holder = around.neighbours.get("holder")
    if holder is not None:
        return Why("blocked", f"Blocked by {holder.work_id}, {_doing(holder)}.", holder.work_id, _until(holder))
    ahead = around.neighbours.get("ahead")
    if ahead is not None:
        return Why("blocked", f"Blocked by {ahead.work_id}, which comes first in its lane.", ahead.work_id)
    if item.state == State.BLOCKED:
        sentence = "Blocked, but no earlier work of the lane is due. Run `script/manage audit`, then `script/manage repair`."
        return Why("stranded", sentence)
    return None


def _attempts(item: WorkItem) -> str:
    return "1 attempt" if item.attempts == 1 else f"{item.attempts} attempts"


def _waiting(item: WorkItem, now: datetime) -> Why | None:
    """What time alone ends."""
    if item.run_after <= now:
        return None
    at = iso(item.run_after)
    if item.state == State.RETRY:
        because = f": {_quote(item.last_error)}" if item.last_error else "."
        return Why("retry", f"Retrying at {at} after {_attempts(item)}{because}", until=item.run_after)
    return Why("settling", f"Settling: collecting events until {at}.", until=item.run_after)


def _unattended(item: WorkItem, around: Surroundings) -> Why | None:
    if around.workers == 0:
        return Why("no_worker", "No worker is online. Start `script/server` or `script/manage run_worker`.")
    if around.flow_missing:
        flow = flow_name(item.companion_pack, item.companion_flow)
        return Why(
            "no_flow", f"No running worker has the flow {flow}, for which it has waited since {iso(item.run_after)}. {ADD_APP}"
        )
    return None


def _apart(item: WorkItem) -> Why | None:
    if not item.workers_lost:
        return None
    sentence = "A worker was lost while it ran, so it runs alone next; waiting for a worker that runs nothing else."
    return Why("runs_alone", sentence, until=item.run_after)


def _doing(neighbour: Neighbour) -> str:
    if neighbour.state == State.PROCESSING:
        return "which is running"
    if neighbour.state == State.RETRY:
        return f"which retries at {iso(neighbour.run_after)}"
    return f"which is {neighbour.state}"


def _until(neighbour: Neighbour) -> datetime | None:
    return neighbour.lease_expires_at if neighbour.state == State.PROCESSING else neighbour.run_after


def _quote(text: str | None) -> str:
    """The first line of a foreign text, cut to a length that a sentence can bear."""
    line = (text or "no reason given").strip().partition("\n")[0]
    return line if len(line) <= ERROR_CHARACTERS else f"{line[:ERROR_CHARACTERS]}…"
