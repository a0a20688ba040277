"""Ranges: the inputs of claimed generations (docs/protocol.md#ranges). Plain reads, a bounded number of statements for a whole
batch.

An ordinary generation has the events of its projection after its lower bound through its own selected event; a replay has its
lineage root's inputs with its own replay event in the place of the root's selected one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from projection.database.catalogue import chunks
from projection.database.clock import from_db
from projection.facts import Input, Source
from projection.inputs.replay_chains import LONGEST_LINEAGE
from projection.leases import Claimed
from projection.models import Event, WorkItem
from projection.order import Membership, Place, replay_order
from projection.rows import EventRow

RANGES_A_STATEMENT: Final = 256


class BrokenRange(RuntimeError):
    """A generation's range does not hold its selected event, or its lineage is not retained; run `audit` and see what it names."""


@dataclass(frozen=True, slots=True)
class Root:
    """The ordinary item that a replay goes back to."""

    id: int
    event_id: int
    ordinal: int
    created: datetime
    projection_key: str | None


def read_inputs(batch: Sequence[Claimed]) -> dict[int, list[Input]]:
    """Work item id → its inputs in order. Raises BrokenRange rather than hand over fewer than a generation owns."""
    roots = read_roots({one.item.replay_of_work_id for one in batch if one.item.replay_of_work_id})
    ordinary = {_range_owner(one, roots) for one in batch if one.item.projection_key}
    events = read_ranges(ordinary)
    return {one.item.id: _inputs(one, roots, events) for one in batch}


def _range_owner(one: Claimed, roots: Mapping[str, Root]) -> int:
    return roots[one.item.replay_of_work_id].id if one.item.replay_of_work_id else one.item.id


def read_ranges(ids: Iterable[int]) -> dict[int, list[EventRow]]:
    """Ordinary generation id → the events of its range in order. Two statements per 256 generations; more only for projections that
    have rows from before ordinals.
    """
    found: dict[int, list[EventRow]] = {}
    for chunk in chunks(sorted(ids), RANGES_A_STATEMENT):
        bounds = WorkItem.objects.read_lower_bounds(chunk)
        found |= _numbered_ranges([(item, key, lower or 0, own) for item, key, own, lower, mixed in bounds if not mixed])
        found |= _mixed_ranges({item: key for item, key, _, _, mixed in bounds if mixed})
    return found


def _numbered_ranges(bounds: Sequence[tuple[int, str, int, int]]) -> dict[int, list[EventRow]]:
    """`bounds`: (work item id, projection key, after ordinal, through ordinal)."""
    if not bounds:
        return {}
    by_key: dict[str, list[EventRow]] = {}
    for key, row in Event.objects.read_inputs([(key, lower, own) for _, key, lower, own in bounds]):
        by_key.setdefault(key, []).append(row)
    return {item: [row for row in by_key.get(key, ()) if lower < row.ordinal <= own] for item, key, lower, own in bounds}


def _mixed_ranges(keys: Mapping[int, str]) -> dict[int, list[EventRow]]:
    """Work item id → events, by membership: for projections with rows from before ordinals, where bounds prove nothing."""
    members = mixed_members(keys)
    wanted = [place.event_id for places in members.values() for place in places]
    rows = {row.id: row for row in Event.objects.read_events(wanted)} if wanted else {}
    return {item: [rows[place.event_id] for place in places] for item, places in members.items()}


def mixed_members(keys: Mapping[int, str]) -> dict[int, list[Place]]:
    """Ordinary generation id → places of the events that it represents, in order; `keys` are their projections."""
    if not keys:
        return {}
    selections: dict[str, dict[int, Place]] = {key: {} for key in keys.values()}
    for key, item, place in WorkItem.objects.read_selections(selections):
        selections[key][item] = place
    memberships = {key: Membership(places.values()) for key, places in selections.items()}
    owned: dict[Place, list[Place]] = {}
    for key, place in Event.objects.read_event_places(selections):
        owner = memberships[key].owner(place)
        if owner is not None:
            owned.setdefault(owner, []).append(place)
    return {item: replay_order(owned.get(selections[key][item], ())) for item, key in keys.items()}


def _inputs(one: Claimed, roots: Mapping[str, Root], events: Mapping[int, Sequence[EventRow]]) -> list[Input]:
    item = one.item
    root = roots[item.replay_of_work_id] if item.replay_of_work_id else None
    selected = (
        _as_input(one.selected) if root is None else replace(_as_input(one.selected), ordinal=root.ordinal, created=root.created)
    )
    if item.projection_key is None:
        return [selected]
    owner, last = (item.id, item.event_id) if root is None else (root.id, root.event_id)
    rows = events.get(owner, ())
    if all(row.id != last for row in rows):
        raise BrokenRange(f"the range of {item.work_id} does not contain its selected event {last}")
    return [selected if row.id == last else _as_input(row) for row in rows]


def _as_input(row: EventRow) -> Input:
    """The event as a flow sees it. Of a replay event ordinal and time are then the fact's: its own are only its place in the queue."""
    return Input(
        event_id=row.id,
        ordinal=row.ordinal,
        kind=row.kind,
        source=Source(row.source_type, row.source_id, row.account),
        delivery_id=row.delivery_id,
        provider_time=row.provider_time,
        payload=row.payload,
        payload_sha256=row.payload_sha256,
        created=row.created,
        replay_of_event_id=row.replay_of_event_id,
        receipt_id=row.receipt_id,
        item=row.item,
    )


def read_roots(work_ids: Iterable[str]) -> dict[str, Root]:
    """Replayed WorkId → the ordinary item at the root of its lineage. One statement per step of the longest lineage.

    Raises BrokenRange when an ancestor is not retained or the lineage is a cycle.
    """
    roots: dict[str, Root] = {}
    parents: dict[str, str] = {}
    unknown = set(work_ids)
    asked = set(unknown)
    for _ in range(LONGEST_LINEAGE):
        if not unknown:
            break
        rows = WorkItem.objects.read_lineage(sorted(unknown))
        if len(rows) < len(unknown):
            raise BrokenRange(f"the replayed work is no longer stored: {sorted(unknown - {row[0] for row in rows})[0]}")
        unknown = set()
        for work_id, item_id, replay_of, key, event_id, ordinal, created in rows:
            if replay_of is None:
                roots[work_id] = Root(item_id, event_id, ordinal, from_db(created), key)
            else:
                parents[work_id] = replay_of
                unknown |= {replay_of} - roots.keys() - parents.keys()
    return {work_id: roots[_ancestor(work_id, parents, roots)] for work_id in asked}


def _ancestor(work_id: str, parents: Mapping[str, str], roots: Mapping[str, Root]) -> str:
    for _ in range(LONGEST_LINEAGE):
        if work_id in roots:
            return work_id
        work_id = parents[work_id]
    raise BrokenRange(f"the lineage of {work_id} is a cycle")
