"""Puts right what only a fault can have left behind: `repair [--dry-run]`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.sweep import sweep
from projection.cli import DONE, HeadraceCommand
from projection.repair import repair


class Command(HeadraceCommand):
    help = "Makes missing work again, hands off queued generations, moves stranded lanes and routes unrouted events."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count, change nothing")

    def perform(self, **options: Any) -> int:
        dry_run: bool = options["dry_run"]
        found = repair(dry_run=dry_run)
        answer = {
            "dry_run": dry_run,
            "missing_tasks": found.missing_tasks,
            "handoffs": found.handoffs,
            "lanes": found.lanes,
            "unrouted_events": sweep(dry_run=dry_run),
        }
        verb = "to repair" if dry_run else "repaired"
        self.emit(answer, [f"{count} {name.replace('_', ' ')} {verb}" for name, count in answer.items() if name != "dry_run"])
        return DONE
