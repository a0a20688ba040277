"""Replay chains: an item, its replay, that one's replay, and so on. Reads only; under the namespace lock no new replay appears."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from projection.database.catalogue import fetch
from projection.rows import WORK_COLUMNS, WorkRow

LONGEST_LINEAGE: Final = 1000
"""Replays of replays, for everything that follows them; a longer lineage is a cycle."""


class EndlessChain(RuntimeError):
    """A replay chain is longer than 1,000 or a cycle; run `audit` and see what it names."""


@dataclass(frozen=True, slots=True)
class ReplayChain:
    """Ids of an item and of its replays, oldest first."""

    ids: tuple[int, ...]


def read_chains(work_ids: Sequence[str]) -> dict[str, ReplayChain]:
    """WorkId → its chain of replays from that item on; unknown WorkIds are left out. One statement per step of the longest one."""
    found = {row[0]: [row[1]] for row in fetch("read_work_ids", work_ids=tuple(work_ids))} if work_ids else {}
    tails = {work_id: work_id for work_id in found}
    for _ in range(LONGEST_LINEAGE):
        if not tails:
            return {work_id: ReplayChain(tuple(ids)) for work_id, ids in found.items()}
        children = {row[0]: (row[1], row[2]) for row in fetch("read_next_replays", work_ids=tuple(set(tails.values())))}
        for work_id, tail in list(tails.items()):
            child = children.get(tail)
            if child is None:
                del tails[work_id]
            else:
                found[work_id].append(child[1])
                tails[work_id] = child[0]
    raise EndlessChain(f"the replays of {sorted(tails)[0]} form a cycle")


def read_scope_ids(ids: Sequence[int]) -> list[int]:
    """Ids of the nonterminal generations in the source scopes of the given generations. One statement; none for no ids."""
    return [row[0] for row in fetch("read_scopes", ids=tuple(ids))] if ids else []


def read_rows(ids: Iterable[int]) -> dict[int, WorkRow]:
    """Items as they stand, without a lock, for previews. One statement; none for no ids."""
    wanted = tuple(sorted(set(ids)))
    rows = fetch("read_work_items", work_columns=WORK_COLUMNS, ids=wanted) if wanted else []
    return {row[0]: WorkRow.of(row) for row in rows}
