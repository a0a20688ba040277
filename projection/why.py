"""Why is this not running? One sentence for a work item or a lane, from a fixed number of reads and one pure decision (`explain`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from projection import breaker, flows, route_terms
from projection.activation import is_activated
from projection.clock import from_db
from projection.facts import flow_name
from projection.heartbeat import ALIVE_SECONDS
from projection.models import Worker, WorkItem
from projection.sending import fetch
from projection.states import TERMINAL, State
from projection.why_decision import Limited, Neighbour, Parked, Pause, Surroundings, Why, explain

CLAIM_WORKER: Final = "worker"


def why(item: WorkItem) -> Why:
    """Why `item` is not running now, or what it is doing, or how it ended. At most five queries, whatever the size of its lane,
    and three more when this process meets its route for the first time.
    """
    return explain(item, _surroundings(item))


def why_lane(lane_key: str) -> Why:
    """Why nothing of a lane is running: the reason of the item whose turn it is, which `blocking_work_id` names."""
    heads = fetch("read_lane_heads", lane_key=lane_key)
    head = WorkItem.objects.filter(id=heads[0][1]).first() if heads else None
    if head is None:
        return Why("idle", "Nothing waits in this lane.")
    reason = why(head)
    return replace(reason, blocking_work_id=reason.blocking_work_id or head.work_id)


def _surroundings(item: WorkItem) -> Surroundings:
    """Reads what surrounds a nonterminal item. An ended or running one needs no more than the clock."""
    ((now, held_by, held_at, reason, release_at, *pauses),) = fetch("read_why_scope", id=item.id) or [(None,) * 19]
    if now is None:
        raise WorkItem.DoesNotExist(f"work item {item.work_id} is not retained any more")
    around = Surroundings(from_db(now))
    if item.state in TERMINAL or item.state == State.PROCESSING:
        return around
    parked, limited = _gates(item)
    hashes = _live_flow_hashes(around.now)
    return replace(
        around,
        activated=is_activated(),
        paused=_pause_of(item, pauses, around.now),
        hold=(held_by, from_db(held_at), reason) if held_at is not None else None,
        hold_ends=from_db(release_at),
        neighbours=_neighbours(item),
        parked=parked,
        limited=limited,
        workers=len(hashes),
        flow_missing=_is_missing(item, hashes),
    )


def _pause_of(item: WorkItem, columns: Sequence[Any], now: datetime) -> Pause | None:
    """The outermost pause that is not over. `columns`: four of the namespace, then five each (its name first) of pack and route."""
    scopes = [(f"namespace {item.namespace}", columns[:4])]
    scopes += [(f"{kind} {columns[at]}", columns[at + 1 : at + 5]) for kind, at in (("pack", 4), ("route", 9))]
    for what, (since, by, reason, resumes_at) in scopes:
        if since is not None and (resumes_at is None or from_db(resumes_at) > now):
            return Pause(what, from_db(since), by, reason, from_db(resumes_at))
    return None


def _gates(item: WorkItem) -> tuple[Parked | None, Limited | None]:
    """What keeps its destination and its limit. One query, and up to three when this process meets the route for the first time."""
    route_terms.learn([item.route_id])
    terms = route_terms.find(item.route_id)
    if terms is None:
        return None, None
    rows = fetch("read_why_gates", destination_key=breaker.key_of(terms.destination), limit_key=terms.limit_key)
    parked, limited = None, None
    for kind, name, until, since, reason, rate, per in rows:
        if kind == "destination":
            parked = Parked(name, from_db(until), from_db(since), reason)
        else:
            limited = Limited(name, rate, per / 1_000_000, from_db(until))
    return parked, limited


def _neighbours(item: WorkItem) -> dict[str, Neighbour]:
    rows: list[tuple[Any, ...]] = fetch(
        "read_why_neighbours",
        id=item.id,
        projection_key=item.projection_key,
        lane_key=item.lane_key,
        lane_position=item.lane_position,
    )
    return {role: Neighbour(work_id, state, from_db(run_after), from_db(lease)) for role, work_id, state, run_after, lease in rows}


def _live_flow_hashes(now: datetime) -> list[str]:
    alive = Worker.objects.filter(kind=CLAIM_WORKER, seen_at__gte=now - timedelta(seconds=ALIVE_SECONDS))
    return list(alive.values_list("flows_hash", flat=True))


def _is_missing(item: WorkItem, live_hashes: list[str]) -> bool:
    """Certain only where every live worker has the flows of this very process; other sets of flows are known by their hash alone."""
    known_here = flows.find(flow_name(item.companion_pack, item.companion_flow)) is not None
    return not known_here and set(live_hashes) == {flows.flows_hash()}
