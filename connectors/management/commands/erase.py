"""Erasure: `erase --source TYPE:ID --reason …`, `erase --receipt ID --reason …`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from connectors.audit_log import cli_actor
from connectors.management.configuration_command import add_namespace
from connectors.retention import erase
from connectors.retention.erase import Erased
from connectors.retention.erased_sources import find_source
from projection.cli import DONE, FINDINGS, HeadraceCommand, add_confirmation, confirm, demand_reason
from projection.refusals import Refused


class Command(HeadraceCommand):
    help = (
        "Erases a person's data: removes bodies, payloads, errors and the live record, and keeps ids, order and hashes. Refused "
        "while work still needs the data. Not erased: this host's log files, spooled deliveries until they are drained, backups, and "
        "data that flows have written or sent elsewhere."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--source", metavar="TYPE:ID", help="a source record, such as contact:42")
        what.add_argument("--receipt", metavar="ID", type=int, help="one delivery and its events; live records stay")
        add_namespace(parser)
        parser.add_argument("--pack", help="only data received by this pack (default: all packs of the namespace)")
        parser.add_argument("--account", help="account of the source, where several have a record of this id")
        parser.add_argument("--reason", default="", help="reason, for the audit log (required, except with --dry-run)")
        parser.add_argument(
            "--discard", action="store_true", help="discard dead letters of the source first, instead of refusing to erase"
        )
        parser.add_argument("--dry-run", action="store_true", help="count what would be erased; erase nothing")
        add_confirmation(parser)

    def perform(self, **options: Any) -> int:
        dry_run: bool = options["dry_run"]
        if not dry_run:
            named = options["source"] or options["receipt"]
            what = f"erases the data of {'source' if options['source'] else 'receipt'} {named}"
            demand_reason(what, options["reason"])
            confirm(what, named, yes=options["yes"])
        if options["receipt"] is not None:
            done = erase.erase_receipt(options["receipt"], actor=cli_actor(), reason=options["reason"], dry_run=dry_run)
        else:
            done = self._source(**options)
        self.emit({"dry_run": dry_run, **asdict(done)}, _lines(done, "to erase" if dry_run else "erased"))
        return FINDINGS if done.refused else DONE

    def _source(self, **options: Any) -> Erased:
        source = find_source(options["source"], options["namespace"], options["pack"], options["account"])
        if isinstance(source, Refused):
            return Erased(refused=(source,))
        if options["dry_run"]:
            return erase.examine(source)
        return erase.erase_source(source, actor=cli_actor(), reason=options["reason"], discard=options["discard"])


def _lines(done: Erased, verb: str) -> Iterator[str]:
    for one in done.refused:
        yield f"refused: {one.reason}"
    if done.refused and not any(done.counts().values()):
        return
    for name, count in done.counts().items():
        if name != "lost_items":
            yield f"{count} {name.replace('_', ' ')} {verb}"
    if done.lost_items:
        yield f"{done.lost_items} rejected items erased with the bodies that contained them"
    if done.shared_events:
        yield f"events of other sources still contain the text of the same items: {', '.join(map(str, done.shared_events))}"
