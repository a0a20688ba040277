"""Reading again: stored receipts go back to the router, to be read by today's pack and settings (docs/protocol.md#reading-again)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from django.db.models import QuerySet

from connectors import audit_log
from connectors.models import Endpoint, Pack, Receipt
from connectors.operations.work_filters import UnknownName
from projection.database.catalogue import Sender, chunks
from projection.database.transactions import run_unit
from projection.logs import log_event
from projection.refusals import Refused
from projection.runtime.wake_up import notify
from projection.states import ReceiptState

MOST_AT_ONCE: Final = 1000
"""Receipts of one call: what is read again comes before newer deliveries, which must not wait long."""
RECEIPTS_A_UNIT: Final = 200
REJECTING: Final = (ReceiptState.PARTIAL, ReceiptState.REJECTED)
REREADABLE: Final = (*REJECTING, ReceiptState.ROUTED, ReceiptState.QUARANTINED)

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class ReceiptFilter:
    """Empty members do not filter. `endpoint` is a slug or namespace/slug; times (aware) bound when the receipt arrived."""

    states: tuple[ReceiptState, ...] = REJECTING
    pack: str = ""
    endpoint: str = ""
    delivery: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reread:
    """Ids of receipts that the router reads again, and why others are not."""

    queued: tuple[int, ...] = ()
    refused: tuple[Refused, ...] = ()


def receipts(chosen: ReceiptFilter) -> QuerySet[Receipt]:
    """The receipts that the filter selects and whose bytes are there, in no order. Raises UnknownName."""
    rows = Receipt.objects.filter(state__in=chosen.states, erasure_id=None)
    if chosen.pack:
        rows = rows.filter(pack_id__in=_known("pack", chosen.pack, Pack.objects.filter(name=chosen.pack)))
    if chosen.endpoint:
        namespace, slash, slug = chosen.endpoint.rpartition("/")
        found = Endpoint.objects.filter(slug=slug, **({"namespace": namespace} if slash else {}))
        rows = rows.filter(endpoint_id__in=_known("endpoint", chosen.endpoint, found))
    if chosen.delivery:
        rows = rows.filter(idempotency_key=chosen.delivery)
    if chosen.since:
        rows = rows.filter(received_at__gte=chosen.since)
    return rows.filter(received_at__lt=chosen.until) if chosen.until else rows


def _known(what: str, name: str, rows: QuerySet[Pack] | QuerySet[Endpoint]) -> list[int]:
    ids = list(rows.values_list("id", flat=True))
    if not ids:
        raise UnknownName(f"there is no {what} {name!r}; `{what}s list` shows the existing ones")
    return ids


def oldest_ids(chosen: ReceiptFilter) -> list[int]:
    """The oldest receipts that the filter selects: one more than are read again at once, where there are as many. Raises UnknownName."""
    return list(receipts(chosen).order_by("id").values_list("id", flat=True)[: MOST_AT_ONCE + 1])


def reread(ids: Sequence[int], *, actor: str, reason: str) -> Reread:
    """Give receipts back to the router, in small transactions, each with its audit entry. Nothing that they brought is removed.

    Refused: `not_found`, `pending`, `conflict`, `erased`, `pruned`.
    """
    done = Reread()
    for some in chunks(sorted(set(ids)), RECEIPTS_A_UNIT):
        step = run_unit("reread", partial(_reread, some, actor, reason))
        done = Reread(done.queued + step.queued, done.refused + step.refused)
        if step.queued:
            log_event("reread", count=len(step.queued), actor=actor, reason=reason)
            notify("route")
    return done


def _reread(ids: Sequence[int], actor: str, reason: str) -> Reread:
    """The unit: lock, look, mark, note."""
    rows = {row[0]: row for row in _sql.fetch("lock_receipts_to_reread", ids=tuple(ids))}
    refusals = [_refusal(one, rows.get(one)) for one in ids]
    refused = tuple(found for found in refusals if found is not None)
    queued = tuple(one for one, found in zip(ids, refusals, strict=True) if found is None)
    if queued:
        _sql.execute("reread_receipts", ids=queued)
        target = f"receipt {queued[0]}" if len(queued) == 1 else f"{len(queued)} receipts"
        audit_log.record(actor, "receipt.reread", target, reason, len(queued), {"receipts": list(queued)})
    return Reread(queued, refused)


def _refusal(receipt_id: int, row: tuple[int, str, int | None, int, int] | None) -> Refused | None:
    """Why a receipt is not read again; None: it is. `row` as `lock_receipts_to_reread` gives it."""
    if row is None:
        return Refused(str(receipt_id), "not_found", f"there is no receipt {receipt_id}")
    _, state, erasure_id, brought, kept = row
    if erasure_id is not None:
        return Refused(str(receipt_id), "erased", f"the body of receipt {receipt_id} was erased")
    if state == ReceiptState.PENDING:
        return Refused(str(receipt_id), "pending", f"receipt {receipt_id} is already waiting for the router")
    if state == ReceiptState.CONFLICT:
        reason = f"receipt {receipt_id} has the delivery id of an earlier receipt and another body; the earlier one is processed"
        return Refused(str(receipt_id), "conflict", reason)
    if kept < brought:
        reason = f"events of receipt {receipt_id} were removed by retention, so its items could be processed twice"
        return Refused(str(receipt_id), "pruned", reason)
    return None
