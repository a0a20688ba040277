"""Why is this not running? One sentence for a work item or a lane, from a fixed number of reads and one pure decision (`explain`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from projection import flows
from projection.admission.activation import is_activated
from projection.database.catalogue import fetch
from projection.database.clock import from_db
from projection.facts import flow_name
from projection.inspection.why_decision import Neighbour, Surroundings, Why, explain
from projection.leases import ALIVE_SECONDS
from projection.limits import availability, route_limits
from projection.limits.availability import Block
from projection.limits.route_limits import Gate
from projection.models import Worker, WorkItem
from projection.states import TERMINAL, State

CLAIM_WORKER: Final = "worker"


def why(item: WorkItem) -> Why:
    """Why `item` is not running now, or what it is doing, or how it ended. At most six queries, whatever the size of its lane,
    and one more when this process meets its route for the first time. Raises WorkItem.DoesNotExist for one removed meanwhile.
    """
    found = why_each([item])
    if item.id not in found:
        raise WorkItem.DoesNotExist(f"work item {item.work_id} is no longer retained")
    return found[item.id]


def why_each(items: Sequence[WorkItem]) -> dict[int, Why]:
    """As `why`, for a page of items (some hundreds at most), by id; those that are not retained any more are left out. As many queries."""
    around = _surroundings(items)
    return {item.id: explain(item, around[item.id]) for item in items if item.id in around}


def why_lane(lane_key: str) -> Why:
    """Why nothing of a lane is running: the reason of the item whose turn it is, which `blocking_work_id` names."""
    heads = fetch("read_lane_heads", lane_key=lane_key)
    head = WorkItem.objects.filter(id=heads[0][1]).first() if heads else None
    if head is None:
        return Why("idle", "No work is waiting in this lane.")
    reason = why(head)
    return replace(reason, blocking_work_id=reason.blocking_work_id or head.work_id)


def _surroundings(items: Sequence[WorkItem]) -> dict[int, Surroundings]:
    """Reads what surrounds nonterminal items. Ended and running ones need no more than the clock."""
    scopes = {row[0]: row[1:] for row in fetch("read_why_scope", ids=tuple(item.id for item in items))} if items else {}
    around = {id: Surroundings(from_db(now)) for id, (now, *_) in scopes.items()}
    waiting = [item for item in items if item.id in around and item.state not in TERMINAL and item.state != State.PROCESSING]
    if not waiting:
        return around
    blocks = _blocks(waiting)
    neighbours = _neighbours(waiting)
    hashes = live_flow_hashes(around[waiting[0].id].now)
    activated = is_activated()
    for item in waiting:
        _, held_by, held_at, reason, release_at = scopes[item.id]
        by_kind = {kind: blocks[kind, name] for kind, name in _gates_of(item) if (kind, name) in blocks}
        around[item.id] = replace(
            around[item.id],
            activated=activated,
            paused=next((by_kind[kind] for kind in ("namespace", "pack", "route") if kind in by_kind), None),
            hold=(held_by, from_db(held_at), reason) if held_at is not None else None,
            hold_ends=from_db(release_at),
            neighbours=neighbours.get(item.id, {}),
            parked=by_kind.get("destination"),
            limited=by_kind.get("limit"),
            full=by_kind.get("full"),
            workers=len(hashes),
            flow_missing=is_missing(flow_name(item.companion_pack, item.companion_flow), hashes),
        )
    return around


def _gates_of(item: WorkItem) -> tuple[Gate, ...]:
    """What may block an item, the outermost first."""
    terms = route_limits.find(item.route_id)
    return terms.gates if terms else route_limits.scopes_of(item.namespace, item.pack_id, item.route_id)


def _blocks(items: Sequence[WorkItem]) -> dict[Gate, Block]:
    """What blocks their routes. One query, one more when anything does, and one when this process first meets a route."""
    route_limits.learn(item.route_id for item in items)
    blocked = availability.read().blocked
    return availability.blocks({gate for item in items for gate in _gates_of(item) if gate in blocked})


def _neighbours(items: Sequence[WorkItem]) -> dict[int, dict[str, Neighbour]]:
    """Item → role → the item that it may wait for."""
    found: dict[int, dict[str, Neighbour]] = {}
    rows = fetch("read_why_neighbours", ids=tuple(item.id for item in items))
    for id, role, work_id, state, run_after, lease in rows:
        found.setdefault(id, {})[role] = Neighbour(work_id, state, from_db(run_after), from_db(lease))
    return found


def live_flow_hashes(now: datetime) -> list[str]:
    """What flows each live worker has, by their hash. One query."""
    alive = Worker.objects.filter(kind=CLAIM_WORKER, seen_at__gte=now - timedelta(seconds=ALIVE_SECONDS))
    return list(alive.values_list("flows_hash", flat=True))


def is_missing(flow: str, live_hashes: list[str]) -> bool:
    """Certain only where every live worker has the flows of this very process; other sets of flows are known by their hash alone."""
    return flows.find(flow) is None and set(live_hashes) == {flows.flows_hash()}
