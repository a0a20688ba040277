"""Receipts become tombstones: body and headers go; ids, order and hashes stay. Joins the caller's transaction.

Here and not in `retention`, because the router erases too: an item of an erased event that comes again does not come back with its body.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from projection.database.catalogue import Sender, by_id
from projection.retention.erasure import ERASED_TEXT

_sql: Final = Sender(Path(__file__).parent)


def erase_receipts(ids: Sequence[int], erasure_id: int) -> tuple[int, int]:
    """Make tombstones of receipts, in the caller's transaction: (receipts, items in them that had been rejected and are lost)."""
    rows = _sql.fetch("read_receipts_to_erase", ids=tuple(ids)) if ids else []
    if not rows:
        return 0, 0
    parts, values = by_id(("Verdicts",), [(receipt, _blank(verdicts)) for receipt, verdicts, _ in rows])
    done = _sql.execute("erase_receipts", [*values, erasure_id, tuple(row[0] for row in rows)], **parts)
    return done, sum(row[2] or 0 for row in rows)


def _blank(verdicts: str | None) -> str | None:
    """The verdicts without their reasons."""
    if verdicts is None:
        return None
    found: list[dict[str, Any]] = json.loads(verdicts)
    return json.dumps([{**one, "reason": ERASED_TEXT} for one in found])
