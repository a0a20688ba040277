"""Retention of everything that ends: work and events, their receipts, deliveries that did not verify, bulk jobs
(docs/protocol.md#retention).

In this order, so that what one step frees the next one takes. Kept for good: the audit trail (its entries are evidence and few),
configuration, and the newest generation of each projection with its inputs. Workers forget their own dead (`heartbeat`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from connectors.ingress import unverified
from connectors.retention.receipts import prune_receipts
from projection.bulk.jobs import prune_jobs
from projection.database.catalogue import Sender
from projection.retention.cut_offs import CutOffs, Preview
from projection.retention.prune import prune
from projection.runtime.stop_flag import Stop, never

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Retained:
    """How many rows went (or would go). `finished` False: it was stopped, and the next run goes on."""

    events: int = 0
    work_items: int = 0
    receipts: int = 0
    unverified: int = 0
    jobs: int = 0
    finished: bool = True

    def counts(self) -> dict[str, Any]:
        """Numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "finished"}


def retain(*, dry_run: bool = False, stop: Stop = never) -> Retained:
    """Remove what is past HEADRACE_RETENTION_DAYS (dead letters: HEADRACE_DEAD_RETENTION_DAYS), in small transactions.

    A dry run counts what the run would remove, all steps considered. Raises the database's error; what was committed stays removed.
    """
    cut_offs = CutOffs.of(settings.HEADRACE_RETENTION_DAYS, settings.HEADRACE_DEAD_RETENTION_DAYS)
    preview = Preview() if dry_run else None
    pruned = prune(cut_offs, dry_run=dry_run, preview=preview, stop=stop)
    receipts = prune_receipts(cut_offs.before, preview=preview, stop=stop) if pruned.finished else None
    held = 0 if receipts is None else _unverified(dry_run=dry_run)
    jobs = 0 if receipts is None else prune_jobs(cut_offs.before, dry_run=dry_run)
    return Retained(pruned.events, pruned.work_items, receipts or 0, held, jobs, receipts is not None)


def _unverified(*, dry_run: bool) -> int:
    """Deliveries that are held for longer than an hour, also of endpoints to which nothing comes any more."""
    endpoints = [row[0] for row in _sql.fetch("read_endpoints_with_unverified")]
    if not dry_run:
        return sum(unverified.prune(one) for one in endpoints)
    seconds = unverified.KEPT_SECONDS
    return sum(_sql.fetch("count_old_unverified", endpoint_id=one, seconds=seconds)[0][0] for one in endpoints)
