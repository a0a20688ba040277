"""Retention of receipts (protocol 8): once none of their events is kept, and never one that still waits or is quarantined."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from projection.clock import to_db
from projection.sending import Sender
from projection.states import ReceiptState
from projection.units import run_unit

sql: Final = Sender(Path(__file__).parent / "sql")
PRUNED_STATES: Final = (ReceiptState.ROUTED, ReceiptState.REJECTED, ReceiptState.CONFLICT)
PAGE: Final = 200
"""Receipts deleted in one transaction; a body may have 25 MiB."""
_EARLIEST: Final = datetime(1970, 1, 1)


def prune_receipts(before: datetime, *, dry_run: bool = False) -> int:
    """Remove receipts received before `before` (aware) of which nothing is kept; number of them."""
    total = 0
    for state in PRUNED_STATES:
        after = (_EARLIEST, 0)
        while rows := sql.fetch(
            "read_old_receipts", state=state.value, before=to_db(before), after_time=after[0], after_id=after[1], limit=PAGE
        ):
            after = rows[-1]
            ids = tuple(row[1] for row in rows)
            if dry_run:
                total += len(ids)
            else:
                total += run_unit("prune", partial(sql.execute, "delete_receipts", ids=ids, state=state.value))
    return total
