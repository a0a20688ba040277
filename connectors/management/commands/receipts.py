"""`receipts reread`: stored receipts are read again by today's pack and settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors import audit_log
from connectors.operations.receipts import MOST_AT_ONCE, REJECTING, REREADABLE, ReceiptFilter, oldest_ids, reread
from connectors.operations.work_filters import UnknownName, moment
from projection.cli import DONE, FINDINGS, HeadraceCommand, add_confirmation, confirm, demand_reason
from projection.states import ReceiptState


class Command(HeadraceCommand):
    help = "Works on stored receipts."

    def add_arguments(self, parser: CommandParser) -> None:
        verb = self.add_verb(
            self.verbs(parser),
            "reread",
            self.reread,
            "Reads stored receipts again with the current pack and settings. Items that became events stay as they are; "
            f"rejected ones may become events. At most {MOST_AT_ONCE:,} at once, oldest first.",
        )
        verb.add_argument("receipts", metavar="RECEIPT", nargs="*", type=int, help="receipt ids; or give a filter")
        verb.add_argument(
            "--state",
            action="append",
            choices=[state.value for state in REREADABLE],
            help="receipts in this state (repeatable; default: partial and rejected)",
        )
        verb.add_argument("--pack", default="", help="receipts of this pack")
        verb.add_argument("--endpoint", default="", help="receipts of this endpoint (slug, or namespace/slug)")
        verb.add_argument("--since", default="", help="received after this time, e.g. 2h, 7d, 2026-01-31T10:00Z")
        verb.add_argument("--until", default="", help="received before this time")
        verb.add_argument("--all", action="store_true", help="every partial or rejected receipt")
        verb.add_argument("--dry-run", action="store_true", help="show what would be read again, change nothing")
        verb.add_argument("--reason", default="", help="reason, for the audit log")
        add_confirmation(verb)

    def reread(self, **options: Any) -> int:
        try:
            ids = options["receipts"] or oldest_ids(_filter(options))
        except (UnknownName, ValueError) as error:
            raise CommandError(str(error)) from None
        more, ids = not options["receipts"] and len(ids) > MOST_AT_ONCE, ids[: None if options["receipts"] else MOST_AT_ONCE]
        if options["dry_run"]:
            left = ["More match; run the command again after these are routed."] if more else []
            self.emit({"receipts": ids, "more": more}, [f"would read {len(ids)} receipts again", *left])
            return DONE
        if not ids:
            self.emit({"queued": [], "refused": [], "more": False}, ["no receipt matches"])
            return DONE
        if not options["receipts"]:
            what = f"reads {len(ids)} receipts again"
            demand_reason(what, options["reason"], lasting=False)
            confirm(what, len(ids), yes=options["yes"], lasting=False)
        done = reread(ids, actor=audit_log.cli_actor(), reason=options["reason"])
        lines = [f"{len(done.queued)} receipts will be read again", *(one.reason for one in done.refused)]
        if more:
            lines.append("More match; run the command again after these are routed.")
        self.emit({"queued": list(done.queued), "refused": [asdict(one) for one in done.refused], "more": more}, lines)
        return FINDINGS if done.refused else DONE


def _filter(options: dict[str, Any]) -> ReceiptFilter:
    """Raises ValueError without any filter, or for a time that is none."""
    names = ("state", "pack", "endpoint", "since", "until")
    if not options["all"] and not any(options[name] for name in names):
        raise ValueError("name receipts by their ids, give a filter, or --all for every partial or rejected receipt")
    states = tuple(ReceiptState(state) for state in options["state"] or ()) or REJECTING
    since, until = (moment(options[name]) if options[name] else None for name in ("since", "until"))
    return ReceiptFilter(states, options["pack"], options["endpoint"], "", since, until)
