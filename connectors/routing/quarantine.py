"""Quarantine: receipts whose admission failed too often wait for an operator, who has them routed again. One compare-and-swap."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from connectors import audit_log
from projection.database.catalogue import Sender
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.runtime.wake_up import notify

_sql: Final = Sender(Path(__file__).parent)


def reroute(receipt_id: int, *, actor: str, reason: str) -> bool:
    """Give a quarantined receipt back to the router with a fresh budget; False when it is not in quarantine (any more). Audited."""

    def note(moved: bool) -> None:
        if moved:
            audit_log.record(actor, "receipt.reroute", str(receipt_id), reason)

    moved = run_unit("reroute", lambda: _sql.execute("release_quarantined", id=receipt_id) == 1, note=note)
    if moved:
        log_event("reroute", receipt_id=receipt_id, actor=actor, reason=reason)
        notify("route")
    return moved
