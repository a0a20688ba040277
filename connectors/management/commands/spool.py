"""`spool list / drain / retry / export / discard`: deliveries that this host keeps while the database is away, or that it refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db import DatabaseError, InterfaceError, connections

from connectors import audit_log
from connectors.audit_log import cli_actor
from connectors.ingress.outage import INGRESS
from connectors.ingress.spool import files, set_aside
from connectors.ingress.spool.drain import Drain, alone
from connectors.ingress.spool.set_aside import Aside
from connectors.management.configuration_command import add_reason
from projection.cli import DONE, FINDINGS, HeadraceCommand, add_confirmation, confirm, demand_reason, iso, refusal, table, to_json
from projection.safe_text import error_text

COLUMNS = ("kind", "endpoint", "delivery_id", "arrived", "bytes", "name", "reason")


class Command(HeadraceCommand):
    help = "Manages the spool of this host: verified deliveries that wait for the database. The web server drains it automatically."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        self.add_verb(verbs, "list", self.list, "list waiting deliveries, and those set aside with the reason")
        self.add_verb(verbs, "drain", self.drain, "store the waiting deliveries now (only if no web server runs on this host)")
        retry = self.add_verb(
            verbs, "retry", self.retry, "put deliveries that the database rejected back into the spool, to be stored again"
        )
        export = self.add_verb(
            verbs, "export", self.export, "print deliveries that were set aside as JSON Lines, the format of `receive`"
        )
        discard = self.add_verb(verbs, "discard", self.discard, "permanently remove deliveries that were set aside")
        for verb in (retry, export, discard):
            several, default = ("+", "") if verb is discard else ("*", " (default: all)")
            verb.add_argument("names", metavar="NAME", nargs=several, help=f"file as shown by `spool list`{default}")
        add_reason(discard)
        add_confirmation(discard)

    def list(self, **_options: Any) -> int:
        usage, aside = files.usage(), set_aside.found()
        since = iso(datetime.fromtimestamp(usage.oldest_ns / 1e9, UTC)) if usage.oldest_ns is not None else None
        answer = {
            "folder": str(files.folder()),
            "waiting_bytes": usage.waiting_bytes,
            "oldest": since,
            "aside_bytes": usage.aside_bytes,
            "aside": [one.facts() for one in aside],
        }
        waits = f"{usage.waiting_bytes} bytes waiting, the oldest since {since}" if since else "nothing is waiting"
        rows = [[iso(value) if isinstance(value, datetime) else value for value in map(one.facts().get, COLUMNS)] for one in aside]
        self.emit(answer, [f"{files.folder()}: {waits}", *(["set aside:", *table(COLUMNS, rows)] if rows else [])])
        return FINDINGS if aside else DONE

    def drain(self, **_options: Any) -> int:
        with alone() as ours:
            if not ours:
                return self._not_drained("in_use", "The web server on this host is already draining the spool. Nothing to do.")
            try:
                done = drain_all()
            except (DatabaseError, InterfaceError) as error:
                return self._not_drained(
                    "database_unavailable",
                    f"The database did not store them: {error_text(error)}. They stay in the spool; try again later.",
                )
            finally:
                connections[INGRESS].close()
        self.emit(
            {"drained": dict(done), "refused": []}, [f"{number} {name}" for name, number in done.items()] or ["nothing is waiting"]
        )
        return FINDINGS if done["refused"] else DONE

    def retry(self, *, names: Sequence[str], **_options: Any) -> int:
        found, refused = _named(names, only_refused=True)
        given = [one.name for one in found if set_aside.give_back(one)]
        self.emit(
            {"retried": given, "refused": refused},
            [*(f"back in the spool: {name}" for name in given), *_reasons(refused)] or ["nothing to retry"],
        )
        return FINDINGS if refused else DONE

    def export(self, *, names: Sequence[str], **_options: Any) -> int:
        """Without --json a line for each, `{"headers": …, "body": …}`; what is no text is in the JSON answer alone."""
        found, refused = _named(names, only_refused=False)
        contents = [one.contents() for one in found]
        if not self.as_json:
            refused += [
                refusal(one["name"], "not_text", "not text; export it with --json, which writes its bytes as base64")
                for one in contents
                if "body" not in one
            ]
            for line in _reasons(refused):
                self.stderr.write(line)
        lines = [to_json({"headers": one["headers"], "body": one["body"]}) for one in contents if "body" in one]
        self.emit({"exported": contents, "refused": refused}, lines)
        return FINDINGS if refused else DONE

    def discard(self, *, names: Sequence[str], reason: str, yes: bool, **_options: Any) -> int:
        found, refused = _named(names, only_refused=False)
        if found:
            what = f"removes {len(found)} accepted deliver{'y' if len(found) == 1 else 'ies'} stored nowhere else"
            demand_reason(what, reason)
            confirm(what, len(found), yes=yes)
        for one in found:
            facts = {name: iso(value) if isinstance(value, datetime) else value for name, value in one.facts().items()}
            audit_log.record(cli_actor(), "spool.discard", one.name, reason, detail=facts)
            set_aside.discard(one)
        self.emit(
            {"discarded": [one.name for one in found], "refused": refused},
            [*(f"removed: {one.name}" for one in found), *_reasons(refused)],
        )
        return FINDINGS if refused else DONE

    def _not_drained(self, code: str, reason: str) -> int:
        self.emit({"drained": {}, "refused": [refusal("spool", code, reason)]}, [reason])
        return FINDINGS


def drain_all() -> Counter[str]:
    """Drain until nothing waits: what the database refuses is tried at once as often as it may be, then set aside."""
    drain, total = Drain(apart_seconds=0.0), Counter[str]()
    while done := drain.run():
        total += done
    del total["put_off"]
    return total


def _named(names: Sequence[str], *, only_refused: bool) -> tuple[list[Aside], list[dict[str, str]]]:
    """What was set aside under these names (all, for none), and a refusal for each name that nothing has."""
    there = {one.name: one for one in set_aside.found()}
    wanted = list(names) or [name for name, one in there.items() if not only_refused or one.kind == set_aside.REFUSED]
    refused = [
        refusal(name, "not_found", "no set-aside file has this name; see `spool list`") for name in wanted if name not in there
    ]
    found = [there[name] for name in wanted if name in there]
    if only_refused:
        refused += [
            refusal(one.name, one.kind, f"it is {one.kind}, so it can never be stored; export or discard it")
            for one in found
            if one.kind != set_aside.REFUSED
        ]
    return found, refused


def _reasons(refused: Sequence[dict[str, str]]) -> list[str]:
    return [f"{one['id']}: {one['reason']}" for one in refused]
