"""The lease: what a claim read becomes its own by one compare-and-swap, or not, in one unit.

Locks are taken in the global order: events (only before activation, the ownership fence), then destinations that may be tried again, then
limits, then work items, each by ascending id. Slots and places of a limit are taken for exactly the items that were swapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from django.db import IntegrityError

from projection.admission import older_workers
from projection.claiming.candidates import Candidate
from projection.claiming.started import started_by_claim
from projection.database.transactions import duplicate_key, is_server_conflict, run_unit
from projection.limits import circuit_breaker, concurrency, rate_limits, route_limits
from projection.models import WorkItem

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


@dataclass(frozen=True, slots=True)
class Gate:
    """What an item must pass to be taken: a destination that may be tried with one item, and a limit."""

    probe: str | None = None
    limit_key: str | None = None


NO_GATE: Final = Gate()


def swap_without_lost_lanes(
    preselect: Callable[[set[str]], list[Candidate]], lease: Lease, probes: Mapping[str, int] = MappingProxyType({})
) -> Taken:
    """Take what `preselect` finds, given lost lanes. A lane that got a holder meanwhile is left out of the next pre-selection.

    Of each destination in `probes` (name → row) at most one item is taken.
    """
    lost: set[str] = set()
    for _ in range(ROUNDS):
        found = preselect(lost)
        if not found:
            return Taken()
        try:
            return _swap(found, lease, probes)
        except IntegrityError as error:
            lost.add(_lost_lane(error))
    single = [_swap_one(one, lease, probes) for one in preselect(lost)]
    return Taken([id for one in single for id in one.ids], {id: at for one in single for id, at in one.starts.items()})


def _swap_one(candidate: Candidate, lease: Lease, probes: Mapping[str, int]) -> Taken:
    try:
        return _swap([candidate], lease, probes)
    except IntegrityError as error:
        _lost_lane(error)
        return Taken()


def _lost_lane(error: IntegrityError) -> str:
    """The lane that the error names. Raises the error when it is about anything else than a lane's holder."""
    if duplicate_key(error) != "LaneHolderKey":
        raise error
    found = _LANE_IN_ERROR.search(str(error.args[1]))
    return found.group(1) if found else ""


def _swap(found: Sequence[Candidate], lease: Lease, probes: Mapping[str, int]) -> Taken:
    """Compare-and-swap of the candidates, in a unit of its own. Raises IntegrityError when a lane got a holder: nothing was taken."""
    event_owned = [one.event_id for one in found if one.owner == "event"]
    gates = {one.id: gate for one in found if (gate := _gate_of(one, probes)) != NO_GATE}

    def unit() -> Taken:
        ours = older_workers.fence(event_owned) if event_owned else set()
        mine = [one for one in found if one.owner == "work_item" or one.event_id in ours]
        if gates:
            return _take_gated(mine, gates, probes, lease)
        _claim(mine, lease)
        return Taken([one.id for one in mine])

    return run_unit("claim", unit, retry_on=is_server_conflict, one_statement=not event_owned and not gates)


def _gate_of(candidate: Candidate, probes: Mapping[str, int]) -> Gate:
    terms = route_limits.find(candidate.route_id)
    if terms is None:
        return NO_GATE
    destination = terms.destination if probes else None
    return Gate(destination if destination in probes else None, terms.limit_key)


def _take_gated(mine: Sequence[Candidate], gates: Mapping[int, Gate], probes: Mapping[str, int], lease: Lease) -> Taken:
    """Take what the gates allow; then a slot and a place for each item of a limit, and nothing more of a destination that is tried.

    Seven statements, for limits of how many run at once two more, for a destination that is tried one more.
    """
    tried = {gate.probe for gate in gates.values() if gate.probe is not None}
    locked = circuit_breaker.lock_probes({probes[name]: name for name in tried})
    buckets = rate_limits.lock({gate.limit_key for gate in gates.values() if gate.limit_key is not None})
    places = concurrency.free({key: one.concurrency for key, one in buckets.items() if one.concurrency is not None}, lease.owner)
    room = {key: min(one.free(len(mine)), len(places.get(key, mine))) for key, one in buckets.items()}
    waiting = WorkItem.objects.read_still_waiting([one.id for one in mine])
    failed = circuit_breaker.last_failed(locked.values(), [one.id for one in mine if gates.get(one.id, NO_GATE).probe is not None])
    # The one that failed last would only park the destination again, were it at fault: whoever else waits tries first.
    in_order = sorted((one for one in mine if one.id in waiting), key=lambda one: one.id in failed)
    allowed = _allowed(in_order, gates, locked, room)
    if not _claim(allowed, lease):
        return Taken()
    taken = WorkItem.objects.read_taken([one.id for one in allowed], lease.token)
    circuit_breaker.let_through([locked[name] for id in taken if (name := gates.get(id, NO_GATE).probe) is not None])
    starts: dict[int, float] = {}
    counts: dict[rate_limits.Bucket, int] = {}
    placed: list[tuple[int, int]] = []
    for key, bucket in buckets.items():
        under = [id for id in taken if gates.get(id, NO_GATE).limit_key == key]
        counts[bucket] = len(under)
        if bucket.rate:
            starts.update(zip(under, bucket.starts(len(under)), strict=True))
        placed += zip(places.get(key, ()), under, strict=False)
    rate_limits.take(counts)
    concurrency.take(placed, lease.token)
    return Taken(taken, starts)


def _allowed(
    mine: Sequence[Candidate],
    gates: Mapping[int, Gate],
    locked: Mapping[str, circuit_breaker.Probe],
    room: Mapping[str, int],
) -> list[Candidate]:
    """Those of the candidates that both their gates let pass, first come first served. `room`: how many of each limit may begin."""
    left = dict(room)
    untried = set(locked)
    allowed: list[Candidate] = []
    for one in mine:
        gate = gates.get(one.id, NO_GATE)
        if gate.probe not in (None, *untried) or (gate.limit_key is not None and left.get(gate.limit_key, 0) < 1):
            continue
        untried.discard(gate.probe or "")
        if gate.limit_key is not None:
            left[gate.limit_key] -= 1
        allowed.append(one)
    return allowed


def _claim(mine: Sequence[Candidate], lease: Lease) -> int:
    if not mine:
        return 0
    seen = [(one.id, one.event_id, one.state.value) for one in sorted(mine, key=lambda one: one.id)]
    started = started_by_claim(one.route_id for one in mine)
    return WorkItem.objects.claim_work_items(
        seen, owner=lease.owner, token=lease.token, lease_seconds=lease.seconds, started=started
    )
