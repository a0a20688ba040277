"""`namespaces list / pause / resume`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.configuration.pausing import is_paused
from connectors.management.pause_verbs import PauseVerbs
from connectors.models import Namespace
from projection.cli import DONE, iso, table
from projection.database import clock


class Command(PauseVerbs):
    help = "Lists namespaces, pauses one and resumes it."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        self.add_verb(verbs, "list", self.list, "list all namespaces, and which are paused")
        self.add_pause_verbs(verbs, "namespace")

    def list(self, **_options: Any) -> int:
        now = clock.now()
        rows = [
            {
                "name": row.name,
                "paused_at": iso(row.paused_at) if is_paused(row, now) else None,
                "paused_by": row.paused_by if is_paused(row, now) else None,
                "reason": row.pause_reason if is_paused(row, now) else None,
                "resume_at": iso(row.resume_at) if is_paused(row, now) else None,
            }
            for row in Namespace.objects.order_by("name")
        ]
        headers = ["name", "paused_at", "paused_by", "resume_at", "reason"]
        self.emit(
            {"namespaces": rows}, table([name.replace("_", " ") for name in headers], [[r[h] for h in headers] for r in rows])
        )
        return DONE
