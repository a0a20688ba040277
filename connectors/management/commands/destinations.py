"""`destinations list / retry`: what others' outages keep waiting, and how to try at once whether one is back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from connectors.audit_log import cli_actor
from connectors.management.configuration_command import add_reason
from connectors.operations import verbs
from projection.cli import DONE, FINDINGS, HeadraceCommand, iso, table
from projection.database import clock
from projection.models import Destination


class Command(HeadraceCommand):
    help = "Lists failing and parked destinations; `retry` tries a parked one now."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        sub = self.add_verb(verbs, "list", self.list, "list destinations that are failing or parked (circuit open)")
        sub.add_argument("--all", action="store_true", help="include recovered destinations")
        sub = self.add_verb(verbs, "retry", self.retry, "end the pause of a parked destination; its next item runs immediately")
        sub.add_argument("name", help="name as shown by `destinations list`")
        add_reason(sub)

    def list(self, *, all: bool, **_options: Any) -> int:
        now = clock.now()
        rows = Destination.objects.order_by("name", "id")
        found = [_line(row, row.parked_until is not None and row.parked_until > now) for row in rows]
        found = [line for line in found if all or line["state"] != "closed"]
        headers = ["name", "state", "failures", "parked_since", "parked_until", "last_error"]
        lines = table([name.replace("_", " ") for name in headers], [[line[name] for name in headers] for line in found])
        self.emit({"destinations": found}, lines)
        return DONE

    def retry(self, *, name: str, reason: str, **_options: Any) -> int:
        refused = verbs.try_destination(name, actor=cli_actor(), reason=reason)
        if refused is not None:
            self.emit({"tried": [], "refused": [asdict(refused)]}, [refused.reason])
            return FINDINGS
        self.emit({"tried": [name], "refused": []}, [f"{name}: the next item runs now"])
        return DONE


def _line(row: Destination, is_parked: bool) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": row.state,
        "failures": row.failures,
        "parked_since": iso(row.parked_at) if is_parked else None,
        "parked_until": iso(row.parked_until) if is_parked else None,
        "last_error": row.last_error,
    }
