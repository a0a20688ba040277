"""The swap: what a claim read becomes its own, or not, in one unit.

Locks are taken in the global order: events (only before activation, the ownership fence), then rate limits, then work items, each by
ascending id. Slots of a limit are taken for exactly the items that were swapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import IntegrityError

from projection import legacy, rate_limits, route_terms
from projection.candidates import Candidate
from projection.models import WorkItem
from projection.units import duplicate_key, is_server_conflict, run_unit

ROUNDS: Final = 3
"""Pre-selections after lost lanes, before the rest is taken one by one."""
_LANE_IN_ERROR: Final = re.compile(r"'([0-9a-f]{64})'")


@dataclass(frozen=True, slots=True)
class Lease:
    """Under whose name, token and for how long (seconds) items are taken."""

    owner: str
    token: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Ids that the swap may have taken, and for those of a limited route the monotonic moment at which each may start."""

    ids: Sequence[int] = ()
    starts: dict[int, float] = field(default_factory=dict)


def swap_without_lost_lanes(preselect: Callable[[set[str]], list[Candidate]], lease: Lease) -> Taken:
    """Take what `preselect` finds, given lost lanes. A lane that got a holder meanwhile is left out of the next pre-selection."""
    lost: set[str] = set()
    for _ in range(ROUNDS):
        found = preselect(lost)
        if not found:
            return Taken()
        try:
            return _swap(found, lease)
        except IntegrityError as error:
            lost.add(_lost_lane(error))
    single = [_swap_one(one, lease) for one in preselect(lost)]
    return Taken([id for one in single for id in one.ids], {id: at for one in single for id, at in one.starts.items()})


def _swap_one(candidate: Candidate, lease: Lease) -> Taken:
    try:
        return _swap([candidate], lease)
    except IntegrityError as error:
        _lost_lane(error)
        return Taken()


def _lost_lane(error: IntegrityError) -> str:
    """The lane that the error names. Raises the error when it is about anything else than a lane's holder."""
    if duplicate_key(error) != "LaneHolderKey":
        raise error
    found = _LANE_IN_ERROR.search(str(error.args[1]))
    return found.group(1) if found else ""


def _swap(found: Sequence[Candidate], lease: Lease) -> Taken:
    """Compare-and-swap of the candidates, in a unit of its own. Raises IntegrityError when a lane got a holder: nothing was taken."""
    event_owned = [one.event_id for one in found if one.owner == "event"]
    limits = {one.id: key for one in found if (key := _limit_of(one)) is not None}

    def unit() -> Taken:
        ours = legacy.fence(event_owned) if event_owned else set()
        mine = [one for one in found if one.owner == "work_item" or one.event_id in ours]
        if limits:
            return _take_limited(mine, limits, lease)
        _claim(mine, lease)
        return Taken([one.id for one in mine])

    return run_unit("claim", unit, retry_on=is_server_conflict, one_statement=not event_owned and not limits)


def _limit_of(candidate: Candidate) -> str | None:
    terms = route_terms.find(candidate.route_id)
    return terms.limit_key if terms else None


def _take_limited(mine: Sequence[Candidate], limits: dict[int, str], lease: Lease) -> Taken:
    """Take what its limits allow, and a slot for each item that was taken. Five statements at most."""
    buckets = rate_limits.lock(set(limits.values()))
    left = {key: bucket.free(len(mine)) for key, bucket in buckets.items()}
    allowed: list[Candidate] = []
    for one in mine:
        key = limits.get(one.id)
        if key is not None:
            if left.get(key, 0) < 1:
                continue
            left[key] -= 1
        allowed.append(one)
    if not _claim(allowed, lease):
        return Taken()
    taken = WorkItem.objects.read_taken([one.id for one in allowed], lease.token)
    starts: dict[int, float] = {}
    counts: dict[rate_limits.Bucket, int] = {}
    for key, bucket in buckets.items():
        under = [id for id in taken if limits.get(id) == key]
        counts[bucket] = len(under)
        starts.update(zip(under, bucket.starts(len(under)), strict=True))
    rate_limits.take(counts)
    return Taken(taken, starts)


def _claim(mine: Sequence[Candidate], lease: Lease) -> int:
    if not mine:
        return 0
    seen = [(one.id, one.event_id, one.state.value) for one in sorted(mine, key=lambda one: one.id)]
    return WorkItem.objects.claim_work_items(seen, owner=lease.owner, token=lease.token, lease_seconds=lease.seconds)
