"""Places: how many attempts of a limit's name may run at once, for all workers together (docs/protocol.md#availability).

A place is a row that names a work item and the lease it was claimed under. It is taken for as long as that very lease runs, so nobody
gives one back: the end of an attempt does, and of a worker that died its lease. Whoever takes places has the limit's row locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from projection.database.catalogue import by_id, execute, fetch, insert_rows
from projection.limits.destinations import AT_ONCE

FIRST: Final = 1


def make(wanted: Mapping[str, int]) -> None:
    """See to it that each limit (by key) has so many places. One statement; joins the caller's transaction."""
    insert_rows("make_run_places", [(key, number) for key, count in sorted(wanted.items()) for number in range(FIRST, count + 1)])


def free(most: Mapping[str, int], owner: str) -> dict[str, list[int]]:
    """Rows of the places that `owner` may take now, for each locked limit (key → how many may run). One statement.

    A worker has no more of a limit than it runs at once: what waits for its turn there could run elsewhere.
    """
    if not most:
        return {}
    unused: defaultdict[str, list[int]] = defaultdict(list)
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for key, place, runs_for in fetch("read_run_places", keys=tuple(sorted(most))):
        if runs_for is None:
            unused[key].append(place)
        else:
            owners[key].append(runs_for)
    room = {key: min(count - len(owners[key]), AT_ONCE - owners[key].count(owner)) for key, count in most.items()}
    return {key: unused[key][: max(0, left)] for key, left in room.items()}


def take(taken: Iterable[tuple[int, int]], token: str) -> None:
    """Put work items into free places, each (place, item). One statement; joins the caller's transaction."""
    rows = sorted(taken)
    if rows:
        parts, values = by_id(("WorkItemId",), rows)
        execute("take_run_places", [*values, token, tuple(row[0] for row in rows)], **parts)
