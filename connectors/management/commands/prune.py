"""Retention: `prune [--dry-run]`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.retention.prune import retain
from projection.cli import DONE, HeadraceCommand, add_confirmation, confirm


class Command(HeadraceCommand):
    help = (
        "Removes finished work, its events and their receipts older than HEADRACE_RETENTION_DAYS, in small transactions. The cluster "
        "does so automatically every hour."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count what would be removed; remove nothing")
        add_confirmation(parser)

    def perform(self, **options: Any) -> int:
        dry_run: bool = options["dry_run"]
        if not dry_run:
            confirm("removes what is past its retention period for good", "prune", yes=options["yes"])
        counts = retain(dry_run=dry_run).counts()
        verb = "to remove" if dry_run else "removed"
        self.emit({"dry_run": dry_run, **counts}, [f"{count} {name.replace('_', ' ')} {verb}" for name, count in counts.items()])
        return DONE
