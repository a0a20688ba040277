"""Claim: take due work under a lease (docs/protocol.md#claim).

A plain pre-selection, then one compare-and-swap: no lock is held in between, and rows that changed meanwhile are simply not taken.
What is blocked (paused, limited, enough of its destination here) is left out. All times are the database's.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Final

from projection import flows
from projection.claiming import started
from projection.claiming.candidates import Candidate, candidates
from projection.claiming.lease import Lease, Taken, swap_without_lost_lanes
from projection.facts import RouteFacts
from projection.leases import Claimed
from projection.limits import availability, circuit_breaker, queue_classes, route_limits
from projection.logs import log_event
from projection.models import WorkItem
from projection.rows import WorkRow
from projection.states import State

_known_classes: Final = set(queue_classes.WEIGHTS)
"""Of this process: every class that it met. There are as many as routes name, and those of set-aside work while there is any."""


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """What one claim took. `next_due`: when nothing was taken, the earliest moment at which there may be something (None: unknown)."""

    token: str
    items: Sequence[Claimed]
    next_due: float | None = None
    """Seconds from now, by the database's clock."""
    needs_idle: bool = False
    """Nothing was taken: an item is due that runs apart, as soon as this process runs nothing else (docs/protocol.md#rescue)."""
    is_apart: bool = False
    """The only item runs apart: nothing may be claimed beside it."""
    goes_on: bool = False
    """So much blocked work lay ahead of open work that the next claim, at once, goes on with setting it aside."""
    unreadable: Sequence[tuple[WorkRow, str]] = ()
    """Items that were taken although nobody can run them, with the reason: their event is not retained, or does not prove their route."""

    @property
    def ids(self) -> list[int]:
        """Every work item under the token."""
        return [*(one.item.id for one in self.items), *(row.id for row, _ in self.unreadable)]


def claim(limit: int, *, owner: str, lease_seconds: int, busy: Collection[str] = (), is_idle: bool = True) -> ClaimedBatch:
    """Take at most `limit` due items whose flows this process has, none for a `busy` destination.

    An item over which a worker was lost comes first and alone, and only to a process that `is_idle`.

    Four or five statements, for work of a limited route four to six more; one when nothing is due, two while all that is due is blocked. A
    class that this process meets for the first time costs one look more, and so does a claim that finds nothing where something is due.
    """
    lease = Lease(owner, str(uuid.uuid4()), lease_seconds)
    while (batch := _claim(limit, lease, busy, is_idle)) is None:
        pass
    return batch


def _claim(limit: int, lease: Lease, busy: Collection[str], is_idle: bool) -> ClaimedBatch | None:
    """None: there may be more now. Results of an old binary were copied, and what waited behind them may be of a class that had nothing
    due before; or nothing was found in open classes because another process set their work aside meanwhile, into classes of its own.
    """
    due = _due_classes()
    ready = [(state, name) for state, name, run_after, now in due if run_after <= now]
    moments = [run_after for _, _, run_after, now in due if run_after > now]
    if not ready:
        return ClaimedBatch(lease.token, (), _seconds_until(moments, due[0][3]) if due else None)
    now_blocked = availability.read(busy)
    opened = availability.open_classes(ready, now_blocked)
    clear = availability.set_aside(opened, now_blocked, _known_classes)
    copied: list[int] = []

    def found(is_apart: bool, lost: Collection[str] = ()) -> list[Candidate]:
        classes = [one for one in clear if queue_classes.is_apart(one[1]) == is_apart]
        return candidates(classes, 1 if is_apart else limit, now_blocked, lost, copied) if classes else []

    if not is_idle and found(is_apart=True):
        return ClaimedBatch(lease.token, (), needs_idle=True)
    for is_apart in (True, False) if is_idle else (False,):
        taken = swap_without_lost_lanes(partial(found, is_apart), lease, now_blocked.probes)
        if taken.ids:
            return _read_back(taken, lease, is_apart=is_apart)
    if copied or (clear and _names(_due_classes()) != _names(due)):
        return None
    now = due[0][3]
    goes_on = len(clear) < len(opened)
    moments += [now] if goes_on else now_blocked.opens_at()
    return ClaimedBatch(lease.token, (), _seconds_until(moments, now), goes_on=goes_on)


def forget() -> None:
    """What this process remembers about a database (tests, another database)."""
    _known_classes.intersection_update(queue_classes.WEIGHTS)
    started.forget()
    route_limits.forget()
    circuit_breaker.forget()


def _due_classes() -> list[tuple[State, str, datetime, datetime]]:
    """(state, class, earliest RunAfter, now), naive, of every class with waiting work, set-aside ones in an order of chance.

    One statement, and one more while it finds a class that this process has not met: others may stand behind it.
    """
    while True:
        rows = queue_classes.read_due(_known_classes)
        found = {name for _, name, _, _ in rows}
        if found <= _known_classes:
            break
        _known_classes.update(found)
    _known_classes.difference_update([name for name in _known_classes - found if queue_classes.comes_and_goes(name)])
    due = [(State(state), name, run_after, now) for state, name, run_after, now in rows]
    aside = [one for one in due if queue_classes.is_aside(one[1])]
    random.shuffle(aside)  # else the first of them would have what there is, each time
    return [one for one in due if not queue_classes.is_aside(one[1])] + aside


def _names(due: Sequence[tuple[State, str, datetime, datetime]]) -> set[tuple[State, str]]:
    return {(state, name) for state, name, _, _ in due}


def _seconds_until(moments: Sequence[datetime], now: datetime) -> float | None:
    return max(0.0, (min(moments) - now).total_seconds()) if moments else None


def _read_back(taken: Taken, lease: Lease, *, is_apart: bool) -> ClaimedBatch:
    items: list[Claimed] = []
    unreadable: list[tuple[WorkRow, str]] = []
    for row, selected, snapshot in WorkItem.objects.read_claimed(taken.ids, lease.token):
        if selected is None:
            unreadable.append((row, f"its event {row.event_id} is no longer stored; run `audit`"))
            continue
        try:
            route = _route(snapshot or "")
        except ValueError as error:
            unreadable.append((row, f"event {selected.id} has no valid route for its work: {error}"))
            continue
        if flows.find(route.flow_name) is None:  # the item itself names one that is here
            unreadable.append((row, f"event {selected.id} belongs to flow {route.flow_name!r}, not to the flow of its work"))
            continue
        items.append(Claimed(row, selected, route, taken.starts.get(row.id, 0.0)))
    items.sort(key=lambda claimed: (claimed.item.lane_position, claimed.item.id))
    if items:
        log_event("claim", count=len(items), worker=lease.owner)
    return ClaimedBatch(lease.token, items, is_apart=is_apart, unreadable=unreadable)


@lru_cache(512)
def _route(snapshot: str) -> RouteFacts:
    """Route versions are few and immutable; their text is parsed once per process."""
    return RouteFacts.from_snapshot(snapshot)
