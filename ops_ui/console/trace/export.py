"""What a trace exports as a file."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from connectors.operations.trace import Trace
from ops_ui.console.lists.exports import Columns, Rows


def traced(found: Trace) -> list[dict[str, Any]]:
    """The rows of a trace, receipts first: each with its kind and the fields that it has."""
    parts = (("receipt", found.receipts), ("event", found.events), ("work_item", found.work_items), ("failure", found.failures))
    return [{"row": kind} | {name: getattr(row, name, None) for name in TRACED} for kind, rows in parts for row in rows]


TRACED: Final = (
    *("id", "namespace", "state", "outcome", "delivery_id", "receipt_id", "event_id", "ordinal", "kind", "provider_kind"),
    *("source_type", "source_id", "lane", "route", "route_version", "flow", "work_id", "replay_of_work_id", "attempt", "attempts"),
    *("max_attempts", "received_at", "routed_at", "created", "claimed_at", "terminal_at", "at", "worker", "last_error", "error"),
)
"""Fields of the rows of a trace that are exported; no row has all of them."""


def trace(rows: Sequence[Any]) -> Rows:
    """Of `traced`."""
    return Columns(rows, {name: itemgetter(name) for name in ("row", *TRACED)})
