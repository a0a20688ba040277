"""The ingress' own part of the audit: what holds of receipts and of the admission order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from projection.database.catalogue import catalogue
from projection.integrity.invariants import EVENTS, INVARIANTS, AuditReport, Invariant, audit

RECEIPTS: Final = "`_System_ConnectorReceipt`"
_texts: Final = catalogue(Path(__file__).parent)

INGRESS_INVARIANTS: Final = (
    Invariant(
        "receipt_body",
        _texts["audit_receipt_body"],
        "its body was changed after it was received: it no longer has the hash {0}",
        RECEIPTS,
    ),
    Invariant("receipt_tombstone", _texts["audit_receipt_tombstone"], "{0}", RECEIPTS),
    Invariant(
        "event_erasure",
        _texts["audit_event_erasure"],
        "it was erased, but entry {0} of the audit log, which explains it, is missing",
        EVENTS,
    ),
    Invariant("receipt_routed", _texts["audit_receipt_routed"], "{0}", RECEIPTS),
    Invariant(
        "next_ordinal",
        _texts["audit_next_ordinal"],
        "the next sequence number is {0}, but {1} is already used: no event can be admitted",
        None,
    ),
)


def audit_everything() -> AuditReport:
    """Every invariant of the projection and of the ingress (see `projection.integrity.invariants.audit`)."""
    return audit((*INVARIANTS, *INGRESS_INVARIANTS))
