"""Claim: take due work under a lease (protocol 4).

A plain pre-selection, then one compare-and-swap: no lock is held in between, and rows that changed meanwhile are simply not taken.
All times are the database's.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.db import IntegrityError

from projection import activation, flows, legacy, queue_classes
from projection.facts import RouteFacts, companion_of
from projection.logs import log_event
from projection.models import WorkItem
from projection.rows import EventRow, WorkRow
from projection.states import State
from projection.units import duplicate_key, is_server_conflict, run_unit

_known_classes: Final = set(queue_classes.WEIGHTS)
"""Of this process: every class that it met. There are as many as routes name."""
ROUNDS: Final = 3
"""Pre-selections after lost lanes, before the rest is taken one by one."""

_LANE_IN_ERROR: Final = re.compile(r"'([0-9a-f]{64})'")


@dataclass(frozen=True, slots=True)
class Claimed:
    """One item under our lease, with its selected event and the route version that made it."""

    item: WorkRow
    selected: EventRow
    route: RouteFacts


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """What one claim took. `next_due` is the earliest RunAfter still ahead when nothing was due (None: nothing waits)."""

    token: str
    items: Sequence[Claimed]
    next_due: float | None = None
    """Seconds from now, by the database's clock."""
    unreadable: Sequence[tuple[WorkRow, str]] = ()
    """Items that were taken although nobody can run them, with the reason: their event does not prove their route."""

    @property
    def ids(self) -> list[int]:
        """Every work item under the token."""
        return [*(one.item.id for one in self.items), *(row.id for row, _ in self.unreadable)]


@dataclass(frozen=True, slots=True)
class _Candidate:
    id: int
    event_id: int
    lane_key: str | None
    owner: str
    """Of its event: `work_item`, `event` (an old binary may still run it) or `ended` (it has)."""
    state: State
    queue_class: str


def claim(limit: int, *, owner: str, lease_seconds: int) -> ClaimedBatch:
    """Take at most `limit` due items whose flows this process has. Three or four statements; one when nothing is due."""
    token = str(uuid.uuid4())
    due = WorkItem.objects.read_due_classes(sorted(_known_classes))
    _known_classes.update(queue_class for _, queue_class, _, _ in due)
    ready = [(State(state), queue_class) for state, queue_class, run_after, now in due if run_after <= now]
    if not ready:
        ahead = [(run_after - now).total_seconds() for _, _, run_after, now in due]
        return ClaimedBatch(token, (), min(ahead) if ahead else None)
    taken = _swap_without_lost_lanes(ready, limit, owner, token, lease_seconds)
    items: list[Claimed] = []
    unreadable: list[tuple[WorkRow, str]] = []
    for row, selected, snapshot in WorkItem.objects.read_claimed(taken, token) if taken else ():
        try:
            items.append(Claimed(row, selected, _route(snapshot)))
        except ValueError as error:
            unreadable.append((row, f"event {selected.id} does not prove the route of its work: {error}"))
    items.sort(key=lambda claimed: (claimed.item.lane_position, claimed.item.id))
    if items:
        log_event("claim", count=len(items), worker=owner)
    return ClaimedBatch(token, items, unreadable=unreadable)


@lru_cache(512)
def _route(snapshot: str) -> RouteFacts:
    """Route versions are few and immutable; their text is parsed once per process."""
    return RouteFacts.from_snapshot(snapshot)


def _swap_without_lost_lanes(
    ready: Sequence[tuple[State, str]], limit: int, owner: str, token: str, lease_seconds: int
) -> list[int]:
    """Ids that the compare-and-swap may have taken. A lane that got a holder meanwhile is left out of the next pre-selection."""
    lost: set[str] = set()
    for _ in range(ROUNDS):
        candidates = _candidates(ready, limit, lost)
        if not candidates:
            return []
        try:
            return _swap(candidates, owner, token, lease_seconds)
        except IntegrityError as error:
            lost.add(_lost_lane(error))
    return [item for one in _candidates(ready, limit, lost) for item in _swap_one(one, owner, token, lease_seconds)]


def _swap_one(candidate: _Candidate, owner: str, token: str, lease_seconds: int) -> list[int]:
    try:
        return _swap([candidate], owner, token, lease_seconds)
    except IntegrityError as error:
        _lost_lane(error)
        return []


def _lost_lane(error: IntegrityError) -> str:
    """The lane that the error names. Raises the error when it is about anything else than a lane's holder."""
    if duplicate_key(error) != "LaneHolderKey":
        raise error
    found = _LANE_IN_ERROR.search(str(error.args[1]))
    return found.group(1) if found else ""


def _candidates(ready: Sequence[tuple[State, str]], limit: int, lost: set[str]) -> list[_Candidate]:
    """What may be claimed. What an old binary has ended meanwhile gets its result first, and makes room for the next."""
    while True:
        found = _preselect(ready, limit, lost)
        ended = [one.event_id for one in found if one.owner == "ended"]
        if not ended or not legacy.copy_results(ended):
            return [one for one in found if one.owner != "ended"]


def _preselect(ready: Sequence[tuple[State, str]], limit: int, lost: set[str]) -> list[_Candidate]:
    """Candidates by class weights, at most one per lane; a second pass hands unused shares to whoever has more."""
    names = sorted({companion_of(name) for name in flows.registered()})
    if not names:
        return []
    activated = activation.is_activated()
    found: dict[int, _Candidate] = {}
    lanes: set[str] = set()
    total = sum(queue_classes.weight(queue_class) for _, queue_class in ready)
    for share_only in (True, False) if len(ready) > 1 else (False,):
        for state, queue_class in ready:
            share = -(-limit * queue_classes.weight(queue_class) // total)
            room = min(limit - len(found), share if share_only else limit)
            if room <= 0:
                continue
            # Of what was found already, the lanes are left out by the statement; what has no lane comes again.
            again = sum(one.lane_key is None and (one.state, one.queue_class) == (state, queue_class) for one in found.values())
            for row in WorkItem.objects.preselect_work_items(
                state, queue_class, names, activated=activated, lost_lanes=lost | lanes, limit=room + again
            ):
                candidate = _Candidate(row[0], row[1], row[2], row[3] or "", state, queue_class)
                is_retained = candidate.owner != ""  # else `audit` names it; nobody can run it
                if is_retained and len(found) < limit and (candidate.lane_key is None or candidate.lane_key not in lanes):
                    found.setdefault(candidate.id, candidate)
                    lanes |= {candidate.lane_key} if candidate.lane_key else set()
        if len(found) >= limit:
            break
    return list(found.values())


def _swap(candidates: Sequence[_Candidate], owner: str, token: str, lease_seconds: int) -> list[int]:
    """Compare-and-swap of the candidates, in a unit of its own. Raises IntegrityError when a lane got a holder: nothing was taken."""

    event_owned = [one.event_id for one in candidates if one.owner == "event"]

    def unit() -> list[int]:
        ours = legacy.fence(event_owned) if event_owned else set()
        mine = [one for one in candidates if one.owner == "work_item" or one.event_id in ours]
        seen = [(one.id, one.event_id, one.state.value) for one in sorted(mine, key=lambda one: one.id)]
        if seen:
            WorkItem.objects.claim_work_items(seen, owner=owner, token=token, lease_seconds=lease_seconds)
        return [one[0] for one in seen]

    return run_unit("claim", unit, retry_on=is_server_conflict, one_statement=not event_owned)
