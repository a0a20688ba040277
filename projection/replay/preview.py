"""What a replay would do, without doing it: the replay's own decisions on unlocked rows, and which replays would come out of order.

Bounded parts of a bulk; each costs a dozen reads, whatever its size (a thousand items at most), and two more per level of replays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

from projection.admission.stored_events import proven_route
from projection.database.catalogue import fetch
from projection.inputs.replay_chains import LONGEST_LINEAGE, EndlessChain, read_chains, read_rows, read_scope_ids
from projection.replay.decision import (
    Origin,
    Replayed,
    Result,
    Target,
    active_by_scope,
    class_refusal,
    first_of_each,
    open_to_replay,
)
from projection.retention.erasure import erased_refusal, erased_work
from projection.rows import WorkRow
from projection.states import ExecutionClass

Lane = tuple[str, str]
"""Lane and source scope: where the order of two items matters."""


Taken = Callable[[Collection[str]], Iterable[tuple[str, str]]]
"""Answers, for source scopes, which of them are taken already, each with the WorkId that goes first in it."""


def nothing_taken(_scopes: Collection[str]) -> Iterable[tuple[str, str]]:
    return ()


def preview_replays(
    work_ids: Sequence[str], targets: Mapping[str, Target] | None = None, taken: Taken = nothing_taken
) -> tuple[dict[str, Result], set[str]]:
    """What `replay_many` would answer as things stand, by WorkId with the new ones left empty; and those out of order.

    Out of order: they would run after a newer item of their lane and source has succeeded (state could go backwards).
    """
    known = [work_id for work_id in work_ids if work_id.isascii()]  # no WorkId is anything else, and the column takes none
    chains = read_chains(known)
    newest = [chain.ids[-1] for chain in chains.values()]
    scope_ids = read_scope_ids(newest)
    rows = read_rows([item for chain in chains.values() for item in chain.ids] + scope_ids)
    own = {work_id: [rows[i] for i in chains[work_id].ids if i in rows] if work_id in chains else [] for work_id in work_ids}
    results, chosen = open_to_replay(own, active_by_scope(rows[item] for item in scope_ids if item in rows))
    origins = _origins([row.event_id for row in chosen.values()])
    erased = erased_work(chosen.values())
    for work_id, row in list(chosen.items()):
        refusal = (
            erased_refusal(work_id)
            if row.id in erased
            else class_refusal(work_id, row, origins.get(row.event_id), (targets or {}).get(work_id))
        )
        if refusal:
            results[work_id] = refusal
            del chosen[work_id]
    scopes = {row.scope_key for row in chosen.values() if row.execution_class == ExecutionClass.PROJECTION}
    first, deferred = first_of_each(chosen, taken(scopes))
    return results | deferred | {work_id: Replayed(work_id, "") for work_id in first}, _after_newer(chosen)


def _origins(event_ids: Iterable[int]) -> dict[int, Origin]:
    ids = tuple(set(event_ids))
    rows = fetch("read_origins", ids=ids) if ids else []
    proven = cache(proven_route)
    return {event: Origin(route, bool(key), lane) for event, snapshot, key, lane in rows if (route := proven(snapshot)) is not None}


def _after_newer(chosen: Mapping[str, WorkRow]) -> set[str]:
    """WorkIds whose root is older than the root of one of the same lane and source that has succeeded."""
    lanes = {lane_of(row): row.id for row in chosen.values() if row.lane_key is not None}
    roots = _root_positions({row.work_id: row for row in chosen.values()})
    newest = _newest_successes(lanes)
    return {work_id for work_id, row in chosen.items() if newest.get(lane_of(row), -1) > roots[row.work_id]}


def lane_of(row: WorkRow) -> Lane:
    return row.lane_key or "", row.scope_key


def _newest_successes(lanes: Mapping[Lane, int]) -> dict[Lane, int]:
    """Lane (each with the id of an item in it) → last place of what has succeeded in it: an ordinary item's own, a replay's root's."""
    if not lanes:
        return {}
    ordinary = fetch("read_newest_successes", ids=tuple(lanes.values()))
    newest = {(lane, scope): place for lane, scope, place in ordinary if place is not None}
    scopes = tuple({scope for _, scope in lanes})
    replayed = {row.work_id: row for row in read_rows(row[0] for row in fetch("read_replayed_successes", scopes=scopes)).values()}
    roots = _root_positions(replayed)
    for work_id, row in replayed.items():
        newest[lane_of(row)] = max(newest.get(lane_of(row), -1), roots[work_id])
    return newest


def _root_positions(rows: Mapping[str, WorkRow]) -> dict[str, int]:
    """WorkId → LanePosition of the root of its lineage. One read per level of replays; a parent that is not retained ends it."""
    places = {work_id: row.lane_position for work_id, row in rows.items()}
    parents = {work_id: row.replay_of_work_id for work_id, row in rows.items() if row.replay_of_work_id}
    for _ in range(LONGEST_LINEAGE):
        if not parents:
            return places
        found = {row[0]: row[1:] for row in fetch("read_parents", work_ids=tuple(set(parents.values())))}
        places |= {work_id: found[parent][1] for work_id, parent in parents.items() if parent in found}
        parents = {work_id: found[parent][0] for work_id, parent in parents.items() if parent in found and found[parent][0]}
    raise EndlessChain(f"the replays of {sorted(parents)[0]} form a cycle")
