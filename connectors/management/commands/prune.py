"""Retention: `prune [--dry-run]`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from connectors.receipt_prune import prune_receipts
from projection.cli import DONE, HeadraceCommand
from projection.prune import Terms, prune


class Command(HeadraceCommand):
    help = "Removes finished work, its events and their receipts past HEADRACE_RETENTION_DAYS, in small transactions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count, remove nothing")

    def perform(self, **options: Any) -> int:
        dry_run: bool = options["dry_run"]
        terms = Terms.of(settings.HEADRACE_RETENTION_DAYS, settings.HEADRACE_DEAD_RETENTION_DAYS)
        pruned = prune(terms, dry_run=dry_run)
        answer = {
            "dry_run": dry_run,
            "events": pruned.events,
            "work_items": pruned.work_items,
            "receipts": prune_receipts(terms.before, dry_run=dry_run),
        }
        verb = "to remove" if dry_run else "removed"
        self.emit(answer, [f"{count} {name.replace('_', ' ')} {verb}" for name, count in answer.items() if name != "dry_run"])
        return DONE
