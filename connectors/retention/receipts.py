"""Retention of receipts (docs/protocol.md#retention): once none of their events is kept, and never one that still waits or is
quarantined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from projection.database.catalogue import Sender, chunks
from projection.database.clock import to_db
from projection.database.transactions import run_unit
from projection.retention.cut_offs import Preview
from projection.runtime.stop_flag import Stop, never
from projection.states import ReceiptState

sql: Final = Sender(Path(__file__).parent)
PRUNED_STATES: Final = (ReceiptState.ROUTED, ReceiptState.PARTIAL, ReceiptState.REJECTED, ReceiptState.CONFLICT)
PAGE: Final = 500
"""Receipts looked at by one read."""
RECEIPTS_A_UNIT: Final = 200
BYTES_A_UNIT: Final = 32 * 1024 * 1024
"""Bodies deleted in one transaction (a replicated server logs them whole); a larger one goes alone."""
PREVIEWED_AT_ONCE: Final = 20
"""Receipts whose events a dry run reads at once; a receipt has 20,000 at most."""


def prune_receipts(before: datetime, *, preview: Preview | None = None, stop: Stop = never) -> int | None:
    """Remove receipts received before `before` (aware) of which nothing is kept; number of them, None when it was stopped.

    `preview`: remove nothing, and count those of which nothing would be kept once the events in it were gone.
    """
    total = 0
    for state in PRUNED_STATES:
        for ids in _pages(state, before, preview):
            if preview is not None:
                total += len(ids)
                continue
            for unit in _units(ids):
                if stop():
                    return None
                total += run_unit("prune", partial(sql.execute, "delete_receipts", ids=tuple(unit), state=state.value))
    return total


def _pages(state: ReceiptState, before: datetime, preview: Preview | None) -> Iterator[list[int]]:
    """Ids of the receipts that may go, oldest first."""
    after: tuple[datetime, int] = (datetime(1970, 1, 1), 0)
    while rows := sql.fetch(
        "read_old_receipts", state=state.value, before=to_db(before), after_time=after[0], after_id=after[1], limit=PAGE
    ):
        after = rows[-1][:2]
        kept = {row[1] for row in rows if row[2]}
        if preview is not None:
            kept = {one for some in chunks(sorted(kept), PREVIEWED_AT_ONCE) for one in _still_kept(some, preview)}
        yield [row[1] for row in rows if row[1] not in kept]


def _still_kept(ids: Sequence[int], preview: Preview) -> set[int]:
    return {receipt for receipt, event in sql.fetch("read_events_of_receipts", ids=tuple(ids)) if event not in preview.events}


def _units(ids: Sequence[int]) -> Iterator[list[int]]:
    """The ids in pieces of a bounded number and size."""
    for some in chunks(ids, RECEIPTS_A_UNIT):
        unit: list[int] = []
        room = BYTES_A_UNIT
        for one, length in sql.fetch("read_body_lengths", ids=tuple(some)):
            if unit and length > room:
                yield unit
                unit, room = [], BYTES_A_UNIT
            unit.append(one)
            room -= length
        if unit:
            yield unit
