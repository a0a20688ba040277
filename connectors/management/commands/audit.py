"""`audit`: prove the protocol's invariants on live data; exit code 1 and a line for each violation."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db import DatabaseError

from connectors.operations import audit_results
from connectors.operations.ingress_audit import audit_everything
from projection.cli import DONE, FINDINGS, HeadraceCommand
from projection.database import clock


class Command(HeadraceCommand):
    help = "Verifies that no event was lost or duplicated. Reads everything, locks nothing; the console shows the result. Run it nightly."

    def perform(self, **_options: Any) -> int:
        started_at = clock.now()
        report = audit_everything()
        answer = {"ok": report.ok, "checked": report.checked, "violations": [asdict(found) for found in report.violations]}
        lines = [f"{found.invariant}  {found.id or '-'}  {found.detail}" for found in report.violations]
        if report.ok:
            rows = report.checked
            counts = f"{rows['receipt_body']} receipts, {rows['payload_hash']} events and {rows['lease']} work items"
            lines = [f"ok: {len(rows)} invariants verified on {counts}"]
        else:
            lines.append("Next: run `repair --dry-run`; it shows which of these `repair` can fix.")
        self.emit(answer, lines)
        try:
            audit_results.keep(report, started_at)
        except DatabaseError as error:  # read-only, or a right that reads only: the proof stands without it
            self.stderr.write(f"The result could not be stored for the console ({error}); the check itself is complete.")
        return DONE if report.ok else FINDINGS
