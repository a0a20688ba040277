"""Candidates of a claim: due work that nothing keeps from running, as a plain read sees it. No lock is held; the swap decides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from projection import flows
from projection.admission import activation, older_workers
from projection.facts import companion_of
from projection.limits import queue_classes, route_limits
from projection.limits.availability import Availability
from projection.models import WorkItem
from projection.states import State


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item as it was read."""

    id: int
    event_id: int
    lane_key: str | None
    owner: str
    """Of its event: `work_item`, `event` (an old binary may still run it) or `ended` (it has)."""
    state: State
    queue_class: str
    route_id: int


def candidates(
    ready: Sequence[tuple[State, str]], limit: int, availability: Availability, lost: Collection[str], copied: list[int]
) -> list[Candidate]:
    """At most `limit` items of the classes in `ready` that may be claimed, none of a `lost` lane.

    One statement or two for each class. None while there are results of an old binary: those are copied first (their number goes to
    `copied`), and the claim begins again. Routes that this process meets for the first time are learned, which makes room for others.
    """
    while True:
        found = _preselect(ready, limit, availability, set(lost))
        ended = [one.event_id for one in found if one.owner == "ended"]
        if ended and (count := older_workers.copy_results(ended)):
            copied.append(count)
            return []
        found = [one for one in found if one.owner != "ended"]
        has_learned = route_limits.learn(one.route_id for one in found)
        route_limits.declare(one.route_id for one in found)
        if not has_learned:
            return found
        free = [one for one in found if not availability.is_blocked(one.route_id)]
        if free or not found:
            return free


def _preselect(ready: Sequence[tuple[State, str]], limit: int, availability: Availability, lost: set[str]) -> list[Candidate]:
    """Candidates by class weights, at most one per lane; a second pass hands unused shares to whoever has more."""
    names = sorted({companion_of(name) for name in flows.registered()})
    if not names or not ready:
        return []
    activated = activation.is_activated()
    found: dict[int, Candidate] = {}
    lanes: set[str] = set()
    shares = queue_classes.shares(ready, limit)
    blocked_routes = availability.route_ids()
    for share_only in (True, False) if len(ready) > 1 else (False,):
        for state, queue_class in ready:
            room = min(limit - len(found), shares[state, queue_class] if share_only else limit)
            if room <= 0:
                continue
            # Of what was found already, the lanes are left out by the statement; what has no lane comes again.
            again = sum(one.lane_key is None and (one.state, one.queue_class) == (state, queue_class) for one in found.values())
            for id, event_id, lane, owner, route_id in WorkItem.objects.preselect_work_items(
                state,
                queue_class,
                names,
                activated=activated,
                namespaces=availability.names("namespace"),
                packs=availability.pack_ids(),
                routes=blocked_routes,
                lost_lanes=lost | lanes,
                limit=room + again,
            ):
                if len(found) < limit and (lane is None or lane not in lanes):
                    # Where the event is not retained nobody else can own it, and the claim says so.
                    found.setdefault(id, Candidate(id, event_id, lane, owner or "work_item", state, queue_class, route_id))
                    lanes |= {lane} if lane else set()
        if len(found) >= limit:
            break
    return list(found.values())
