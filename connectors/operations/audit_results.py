"""What the last run of `audit` came to, so that the console can say "clean, 2 h ago" without running it again.

One row beside those of the upkeep. An audit is proof on the rows of its moment; a result that grows old proves less every day.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from connectors.models import Upkeep
from projection.database.catalogue import Sender
from projection.database.clock import to_db
from projection.database.transactions import run_unit
from projection.integrity.invariants import AuditReport, Violation

NAME: Final = "audit"
LISTED: Final = 20
"""Violations that are kept for the page; the command names all of them."""
ROWS_OF: Final = {"receipts": "receipt_body", "events": "payload_hash", "work items": "lease"}
"""Kind of rows → an invariant that reads each of them."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """`rows`: what was read, by kind; `broken`: invariant → lines of the command about it; `violations`: the first of them."""

    started_at: datetime
    ended_at: datetime
    invariants: int
    rows: dict[str, int]
    broken: dict[str, int]
    violations: list[Violation]

    @property
    def ok(self) -> bool:
        return not self.broken

    def age(self, now: datetime) -> timedelta:
        """Since when it stands, by the database's clock."""
        return max(now - self.ended_at, timedelta())


def keep(report: AuditReport, started_at: datetime) -> None:
    """Keep the result in the place of the one before. One statement; raises the database's error."""
    result = {
        "invariants": len(report.checked),
        "rows": {name: report.checked.get(of, 0) for name, of in ROWS_OF.items()},
        "broken": Counter(found.invariant for found in report.violations),
        "violations": [asdict(found) for found in report.violations[:LISTED]],
    }
    text, started = json.dumps(result), to_db(started_at)
    run_unit("audit", lambda: _sql.execute("keep_result", name=NAME, started=started, counts=text), one_statement=True)


def last() -> AuditResult | None:
    """The last result; None where the audit never ran. One query."""
    row = Upkeep.objects.filter(name=NAME, finished_at__isnull=False).first()
    if row is None or row.finished_at is None:
        return None
    kept = json.loads(row.counts)
    found = [Violation(**one) for one in kept["violations"]]
    return AuditResult(row.started_at, row.finished_at, kept["invariants"], kept["rows"], kept["broken"], found)
