"""Prune: retention of finished history (protocol 8), in small transactions, oldest first; a killed run simply goes on next time.

A projection loses generations and their events only from its oldest end, together: never its newest generation, never anything
nonterminal, never a dead one that nobody discarded before its own, longer term. A replayed item and its replays go together, so that
what was replayed can never be replayed again. Per-event: the event and its items together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from projection import clock
from projection.clock import to_db
from projection.event_pages import event_pages
from projection.logs import log_event
from projection.materialize import lock_ascending
from projection.models import Event, WorkItem
from projection.order import Membership, Place
from projection.replay_chains import read_chains
from projection.rows import WorkRow
from projection.sending import execute, fetch
from projection.settle import chunks
from projection.states import TERMINAL, State
from projection.units import run_unit

PAGE: Final = 500
"""Ended items looked at by one read."""
KEYS_A_UNIT: Final = 20
"""Projections pruned in one transaction."""
GENERATIONS_A_UNIT: Final = 100
"""Generations of one projection removed in one transaction; the rest of a long history goes with the next ones."""
ITEMS_A_UNIT: Final = 100
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Terms:
    """Ends before `before` (`dead_before` for dead items that nobody discarded) are past their term; aware times."""

    before: datetime
    dead_before: datetime

    @classmethod
    def of(cls, days: int, dead_days: int) -> Terms:
        """Terms counted back from the database's clock. One query."""
        now = clock.now()
        return cls(now - timedelta(days=days), now - timedelta(days=max(days, dead_days)))

    def is_over(self, row: WorkRow) -> bool:
        """Whether a locked item is terminal and past its term."""
        if row.state not in TERMINAL or row.terminal_at is None:
            return False
        return row.terminal_at < (self.dead_before if row.state is State.DEAD and row.discarded_at is None else self.before)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows went (or, in a dry run, would go)."""

    events: int = 0
    work_items: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return replace(self, events=self.events + other.events, work_items=self.work_items + other.work_items)


def prune(terms: Terms, *, dry_run: bool = False) -> Pruned:
    """Remove finished work and its events past their terms. Raises the database's error; what was committed stays removed."""
    total = Pruned()
    for keys, items in _pages(terms):
        for some_keys in chunks(keys, KEYS_A_UNIT):
            total += _projections(some_keys, terms, dry_run=dry_run)
        for some_items in chunks(items, ITEMS_A_UNIT):
            total += run_unit("prune", partial(_per_event, some_items, terms, dry_run=dry_run))
    total += _unrouted(terms, dry_run=dry_run)
    log_event("prune", count=total.work_items, events=total.events, state="dry run" if dry_run else None)
    return total


def _pages(terms: Terms) -> Iterator[tuple[list[str], list[int]]]:
    """(projection keys, per-event item ids) of ordinary items past their term, page by page. A key comes once."""
    seen: set[str] = set()
    for state in sorted(TERMINAL):
        after: tuple[datetime, int] = (_EARLIEST.replace(tzinfo=None), 0)
        while rows := fetch(
            "read_ended_before", state=state.value, before=to_db(terms.before), after_time=after[0], after_id=after[1], limit=PAGE
        ):
            after = (rows[-1][0], rows[-1][1])
            keys = {key for _, _, key in rows if key is not None} - seen
            seen |= keys
            yield sorted(keys), [item for _, item, key in rows if key is None]


def _projections(keys: Sequence[str], terms: Terms, *, dry_run: bool) -> Pruned:
    """Prune the oldest end of each projection, again and again while there was more than one unit removes."""
    total = Pruned()
    waiting = list(keys)
    while waiting:
        found = run_unit("prune", partial(_oldest_ends, tuple(waiting), terms, dry_run=dry_run))
        total += sum(found.values(), Pruned())
        waiting = [] if dry_run else [key for key, part in found.items() if part.work_items >= GENERATIONS_A_UNIT]
    return total


def _oldest_ends(keys: Sequence[str], terms: Terms, *, dry_run: bool) -> dict[str, Pruned]:
    """The unit: per projection, the removable generations from the oldest on, never the newest."""
    selections: dict[str, dict[Place, int]] = {key: {} for key in keys}
    for key, item, place in WorkItem.objects.read_selections(keys):
        selections[key][place] = item
    limit = None if dry_run else GENERATIONS_A_UNIT
    oldest = {key: Membership(places).history[:-1][:limit] for key, places in selections.items()}
    lineages = _locked_lineages([selections[key][place] for key, places in oldest.items() for place in places])
    mixed = Event.objects.read_mixed_keys(keys)
    found: dict[str, Pruned] = {}
    for key, places in oldest.items():
        gone: list[Place] = []
        for place in places:
            rows = lineages.get(selections[key][place])
            if not rows or rows[0].selection != place or not all(terms.is_over(row) for row in rows):
                break
            gone.append(place)
        if gone:
            rows = [row for place in gone for row in lineages[selections[key][place]]]
            events = _owned(key, selections[key], gone) if key in mixed else None
            found[key] = _remove(rows, key=key, through=gone[-1].ordinal, events=events, dry_run=dry_run)
    return found


def _owned(key: str, selections: Iterable[Place], gone: Sequence[Place]) -> list[int]:
    """Ids of the events that the generations represent, where ordinals alone do not tell."""
    membership, taken = Membership(selections), set(gone)
    return [place.event_id for _, place in Event.objects.read_event_places([key]) if membership.owner(place) in taken]


def _locked_lineages(ids: Sequence[int]) -> dict[int, list[WorkRow]]:
    """Item id → the item and its replays, locked; left out where a replay was made while the locks were awaited."""
    if not ids:
        return {}
    work_ids = dict(WorkItem.objects.filter(id__in=ids).values_list("work_id", "id"))
    before = read_chains(list(work_ids))
    locked = lock_ascending([item for chain in before.values() for item in chain.ids])
    after = read_chains(list(work_ids))
    return {
        work_ids[work_id]: [locked[item] for item in chain.ids]
        for work_id, chain in before.items()
        if after.get(work_id) == chain and all(item in locked for item in chain.ids)
    }


def _remove(rows: Sequence[WorkRow], *, key: str | None, through: int, events: Sequence[int] | None, dry_run: bool) -> Pruned:
    """Delete locked items with their failures, the replay events, and the ordinary events (by id, or the key's range)."""
    single = [row.event_id for row in rows if row.is_replay or key is None] + list(events or ())
    ranged = 0
    if key is not None and events is None:
        ranged = fetch("count_range", key=key, through=through)[0][0]
    if not dry_run:
        ids = tuple(row.id for row in rows)
        if key is not None and events is None:
            ranged = execute("delete_range", key=key, through=through)
        if single:
            _delete_events(single)
        execute("delete_failures", ids=ids)
        execute("delete_work_items", ids=ids)
    return Pruned(events=ranged + len(single), work_items=len(rows))


def _per_event(ids: Sequence[int], terms: Terms, *, dry_run: bool) -> Pruned:
    """The unit for per-event items: each with its replays and their events, when all are past their term."""
    lineages: Mapping[int, list[WorkRow]] = _locked_lineages(ids)
    rows = [row for lineage in lineages.values() if all(terms.is_over(row) for row in lineage) for row in lineage]
    return _remove(rows, key=None, through=0, events=None, dry_run=dry_run) if rows else Pruned()


def _unrouted(terms: Terms, *, dry_run: bool) -> Pruned:
    """Facts that no route ever took, past the ordinary term."""
    total = Pruned()
    for after, through in event_pages():
        rows = fetch("read_old_unrouted_events", after=after, through=through, before=to_db(terms.before))
        for chunk in chunks((row[0] for row in rows), PAGE):
            if not dry_run:
                run_unit("prune", partial(_delete_events, chunk))
            total += Pruned(events=len(chunk))
    return total


def _delete_events(ids: Sequence[int]) -> int:
    return execute("delete_events", ids=tuple(ids))
