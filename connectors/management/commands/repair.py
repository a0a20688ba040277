"""Puts right what only a fault can have left behind: `repair [--dry-run]`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.routing.sweep import sweep
from projection.cli import DONE, FINDINGS, HeadraceCommand, printable, refusal
from projection.integrity.repair import repair


class Command(HeadraceCommand):
    help = (
        "Recreates missing work, starts stranded generations, unblocks stranded lanes and routes events that had no route on "
        "arrival. Exits 1 and lists what it could not repair."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count what would be repaired; change nothing")

    def perform(self, **options: Any) -> int:
        dry_run: bool = options["dry_run"]
        found, swept = repair(dry_run=dry_run), sweep(dry_run=dry_run)
        counts = {
            "missing_tasks": found.missing_tasks,
            "handoffs": found.handoffs,
            "lanes": found.lanes,
            "unrouted_events": swept.copies,
            "late_events": swept.late,
        }
        refused = [*found.refused, *swept.refused]
        verb = "to repair" if dry_run else "repaired"
        lines = [f"{count} {name.replace('_', ' ')} {verb}" for name, count in counts.items() if name != "late_events"]
        if swept.late:
            lines.append(
                f"unrouted events that are older than a routed one of their record: {swept.late}; their flows run after it"
            )
        answer = {"dry_run": dry_run, **counts, "refused": [refusal(one.id, one.code, one.reason) for one in refused]}
        self.emit(answer, lines + [printable(f"{one.id}: {one.reason} ({one.code})") for one in refused])
        return FINDINGS if refused else DONE
