"""`logins list / unlock`: who is kept out of the console after too many failed logins, and an administrator's way to let them in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from connectors import audit_log
from ops_ui.console.login.logins import LIMITS
from ops_ui.models import LoginFailures
from projection.cli import DONE, FINDINGS, HeadraceCommand, iso, refusal, table
from projection.database import clock


class Command(HeadraceCommand):
    help = "Lists lockouts after failed logins; `unlock` lifts one."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        self.add_verb(verbs, "list", self.list_failures, "list failed logins that still count, locked ones first")
        sub = self.add_verb(verbs, "unlock", self.unlock, "lift the lockout of a name, of an address, or all")
        sub.add_argument("username", nargs="?", metavar="NAME", help="a user's name")
        sub.add_argument("--address", help="an address as shown by `logins list`")
        sub.add_argument("--all", action="store_true", dest="everything", help="every name and address")
        sub.add_argument("--reason", default="", help="reason, for the audit log")

    def list_failures(self, **_options: Any) -> int:
        rows = LoginFailures.objects.filter(expires_at__gt=clock.now(), failures__gt=0)
        found = [_shown(row) for row in sorted(rows, key=lambda row: (row.failures < LIMITS[row.scope], row.expires_at, row.id))]
        self.emit({"logins": found}, _table(found))
        return DONE

    def unlock(self, *, username: str | None, address: str | None, everything: bool, reason: str, **_options: Any) -> int:
        if [bool(username), bool(address), everything].count(True) != 1:
            raise CommandError("Give NAME, --address ADDRESS or --all.")
        chosen = Q(username=username) if username else Q(address=address) if address else Q()
        forgotten, _ = LoginFailures.objects.filter(chosen).delete()
        target = username or address or "all"
        if not forgotten:
            missing = refusal(target, "not_found", f"No failed logins of {target} are counted. See `logins list`.")
            self.emit({"unlocked": 0, "refused": [missing]}, [missing["reason"]])
            return FINDINGS
        audit_log.record(audit_log.cli_actor(), "login.unlock", target, reason, count=forgotten)
        self.emit({"unlocked": forgotten, "refused": []}, [f"unlocked: {target}"])
        return DONE


def _shown(row: LoginFailures) -> dict[str, str | int | bool | datetime]:
    return {
        "username": row.username,
        "address": row.address,
        "failures": row.failures,
        "locked": row.failures >= LIMITS[row.scope],
        "until": row.expires_at,
    }


def _table(found: list[dict[str, Any]]) -> list[str]:
    return table(
        ["name", "address", "failures", "locked", "until"],
        [
            (one["username"] or "any", one["address"] or "any", one["failures"], "yes" if one["locked"] else "", iso(one["until"]))
            for one in found
        ],
    )
