"""Prune: retention of finished history (docs/protocol.md#retention), in small transactions, oldest first; a run that ends early
goes on next time.

A projection loses generations and their events only from its oldest end, together (`oldest_ends`). Per-event: the event and its items
together. A replayed item and its replays go together, so that what was replayed can never be replayed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from projection.database.catalogue import chunks, fetch
from projection.database.clock import to_db
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.retention.cut_offs import CutOffs, Preview, Pruned
from projection.retention.oldest_ends import FROM_THE_START, take_oldest_ends
from projection.retention.removal import per_event, remove_events
from projection.runtime.stop_flag import Stop, never
from projection.states import TERMINAL, ReceiptState

PAGE: Final = 500
"""Ended items, or old receipts, looked at by one read."""
KEYS_A_UNIT: Final = 20
"""Projections pruned in one transaction."""
ITEMS_A_UNIT: Final = 100
"""Per-event items removed in one transaction."""
_EARLIEST: Final = datetime(1970, 1, 1)


def prune(cut_offs: CutOffs, *, dry_run: bool = False, preview: Preview | None = None, stop: Stop = never) -> Pruned:
    """Remove finished work and its events past their cut-offs, and facts that no route took. A dry run only counts, to the same numbers.

    Raises the database's error; what was committed stays removed. `stop` is asked before each transaction; `preview` is what a dry run
    adds its findings to. Cost: a look at each item that ended before its term and at each receipt as old, `PAGE` a read; nothing that
    is younger is read.
    """
    noted = (preview or Preview()) if dry_run else None
    total = Pruned()
    for unit in _units(cut_offs, noted):
        if stop():
            total += Pruned(finished=False)
            break
        total += unit()
    log_event("prune", count=total.work_items, events=total.events, state="dry run" if dry_run else None)
    return total


def _units(cut_offs: CutOffs, preview: Preview | None) -> Iterator[Callable[[], Pruned]]:
    """Everything there is to do, piece by piece: each a transaction of its own, or in a dry run some reads.

    Unrouted facts go first. A sweep would route one again whose routed copy is gone, and what that has done would be done twice.
    """
    for events in _unrouted(cut_offs):
        yield _unit(partial(remove_events, events, preview), preview)
    for keys, items in _pages(cut_offs):
        for some_keys in chunks(keys, KEYS_A_UNIT):
            yield from _projections(some_keys, cut_offs, preview)
        for some_items in chunks(items, ITEMS_A_UNIT):
            yield _unit(partial(per_event, some_items, cut_offs, preview), preview)


def _unit(act: Callable[[], Pruned], preview: Preview | None) -> Callable[[], Pruned]:
    return act if preview is not None else partial(run_unit, "prune", act)


def _pages(cut_offs: CutOffs) -> Iterator[tuple[list[str], list[int]]]:
    """(projection keys that have an oldest end to take, per-event item ids) of what is past its term, page by page."""
    bounds = {"before": to_db(cut_offs.before), "dead_before": to_db(cut_offs.dead_before)}
    for state in sorted(TERMINAL):
        after: tuple[datetime, int] = (_EARLIEST, 0)
        while rows := fetch("read_ended_before", state=state.value, after_time=after[0], after_id=after[1], limit=PAGE, **bounds):
            after = (rows[-1][0], rows[-1][1])
            wanted = [(item, key) for _, item, key, is_candidate in rows if is_candidate]
            yield sorted({key for _, key in wanted if key is not None}), [item for item, key in wanted if key is None]


def _projections(keys: Sequence[str], cut_offs: CutOffs, preview: Preview | None) -> Iterator[Callable[[], Pruned]]:
    """Take the oldest end of each projection, again and again while there is more of it than one unit takes."""
    behind = dict.fromkeys(keys, FROM_THE_START)

    def take() -> Pruned:
        taken = take_oldest_ends(behind_now, cut_offs, preview)
        behind.clear()
        behind.update(taken.more)
        return taken.pruned

    while behind:
        behind_now = dict(behind)
        yield _unit(take, preview)


def _unrouted(cut_offs: CutOffs) -> Iterator[Sequence[int]]:
    """Ids of facts that no route ever took, past the ordinary term. Each came in by a receipt that is as old."""
    before = to_db(cut_offs.before)
    for state in (ReceiptState.ROUTED, ReceiptState.PARTIAL):
        after: tuple[datetime, int] = (_EARLIEST, 0)
        while rows := fetch(
            "read_receipts_before", state=state.value, before=before, after_time=after[0], after_id=after[1], limit=PAGE
        ):
            after = rows[-1]
            found = fetch("read_old_unrouted_events", receipt_ids=tuple(row[1] for row in rows), before=before)
            yield from chunks((row[0] for row in found), PAGE)
