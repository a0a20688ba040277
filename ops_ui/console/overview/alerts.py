"""What needs a person, as sentences on top of the overview, each with the page that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse

from connectors.operations.audit_results import AuditResult
from ops_ui.console.base.tags import span
from ops_ui.monitoring import spool_status
from ops_ui.monitoring.counts import Count
from projection.admission.activation import is_activated
from projection.states import ReceiptState, State

AUDIT_IS_OLD: Final = timedelta(hours=48)
"""It runs at night (docs/deployment.md): one night missed is bad luck, two are a timer that is gone."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that needs a person, with the page that shows it."""

    sentence: str
    url: str


def find(
    now: datetime, receipts: Mapping[str, Count], work: Mapping[str, Count], alive: Mapping[str, int], audit: AuditResult | None
) -> list[Alert]:
    """The alerts, gravest first. Reads this host's spool, and until it is there the activation."""
    return [*_standing(receipts, work, alive), *_audit(now, audit), *_waiting(receipts)]


def _standing(receipts: Mapping[str, Count], work: Mapping[str, Count], alive: Mapping[str, int]) -> Iterator[Alert]:
    workers = reverse("admin:workers")
    if not is_activated():
        yield Alert("The projection protocol is not activated. Run script/manage activate_projection.", workers)
    if not alive and (receipts[ReceiptState.PENDING] or work[State.PENDING] or work[State.RETRY]):
        yield Alert("Work is waiting, but no router or worker is online. Start script/server.", workers)


def _audit(now: datetime, audit: AuditResult | None) -> Iterator[Alert]:
    """An audit that never ran is no alarm: a new installation has nothing to prove yet, and the panel says how to run it."""
    if audit is None:
        return
    page = f"{reverse('admin:workers')}#proof"
    if not audit.ok:
        broken = ", ".join(sorted(audit.broken))
        yield Alert(f"The last integrity check failed ({broken}). View the report before you run script/manage repair.", page)
    age = audit.age(now)
    if age > AUDIT_IS_OLD:
        yield Alert(f"The last integrity check is {span(age)} old. Run script/manage audit, and schedule it nightly.", page)


def _waiting(receipts: Mapping[str, Count]) -> Iterator[Alert]:
    quarantined = receipts[ReceiptState.QUARANTINED]
    if quarantined:
        page = f"{reverse('admin:receipts')}?state=quarantined"
        yield Alert(f"Receipts in quarantine because routing failed: {quarantined}. Fix the cause, then re-route them.", page)
    warning = spool_status.status().warning
    if warning is not None:
        yield Alert(warning.sentence, reverse("admin:receipts"))
