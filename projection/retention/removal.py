"""Removal of finished items with their replays, failures and events. Joins its caller's transaction; a dry run locks and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from projection.admission.materialize import lock_ascending
from projection.database.catalogue import execute
from projection.inputs.replay_chains import read_chains, read_rows
from projection.models import WorkItem
from projection.retention.cut_offs import CutOffs, Preview, Pruned
from projection.rows import WorkRow


def lineages(ids: Sequence[int], preview: Preview | None) -> dict[int, list[WorkRow]]:
    """Item id → the item and its replays, locked; left out where a replay was made while the locks were awaited."""
    if not ids:
        return {}
    work_ids = dict(WorkItem.objects.filter(id__in=ids).values_list("work_id", "id"))
    before = read_chains(list(work_ids))
    every = [item for chain in before.values() for item in chain.ids]
    rows = lock_ascending(every) if preview is None else read_rows(every)
    after = before if preview is not None else read_chains(list(work_ids))
    return {
        work_ids[work_id]: [rows[item] for item in chain.ids]
        for work_id, chain in before.items()
        if after.get(work_id) == chain and all(item in rows for item in chain.ids)
    }


def per_event(ids: Sequence[int], cut_offs: CutOffs, preview: Preview | None) -> Pruned:
    """The unit for per-event items: each with its replays and their events, when all are past their term."""
    found = lineages(ids, preview)
    rows = [row for lineage in found.values() if all(cut_offs.is_over(row) for row in lineage) for row in lineage]
    return remove(rows, [row.event_id for row in rows], preview)


def remove(rows: Sequence[WorkRow], events: Iterable[int], preview: Preview | None) -> Pruned:
    """Delete locked items with their failures, and the events of these ids."""
    return _remove_items(rows, preview) + remove_events(events, preview)


def _remove_items(rows: Sequence[WorkRow], preview: Preview | None) -> Pruned:
    ids = tuple(row.id for row in rows)
    if preview is not None:
        return Pruned(work_items=sum(preview.work_items.add(one) for one in ids))
    if ids:
        execute("delete_failures", ids=ids)
        execute("delete_work_items", ids=ids)
    return Pruned(work_items=len(ids))


def remove_events(ids: Iterable[int], preview: Preview | None) -> Pruned:
    """Delete events whose items go with them, or which never had any."""
    wanted = tuple(ids)
    if preview is not None:
        return Pruned(events=sum(preview.events.add(one) for one in wanted))
    return Pruned(events=execute("delete_events", ids=wanted) if wanted else 0)
