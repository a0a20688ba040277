"""`spool list / drain / retry`: deliveries that this host keeps while the database is away."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db import DatabaseError, InterfaceError, connections

from connectors import spool_files
from connectors.outage import INGRESS
from connectors.spool_drain import Drain, alone
from projection.cli import DONE, FINDINGS, HeadraceCommand, iso, refusal
from projection.retry_policy import error_text


class Command(HeadraceCommand):
    help = "The spool of this host: verified deliveries that wait for the database. The web server drains it by itself."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "verb", choices=["list", "drain", "retry"], help="drain: now, where no web server runs; retry: refused ones"
        )

    def perform(self, **options: Any) -> int:
        verbs = {"list": self._list, "drain": self._drain, "retry": self._retry}
        return verbs[options["verb"]]()

    def _list(self) -> int:
        usage, aside = spool_files.usage(), [path.name for path in spool_files.aside_files()]
        since = iso(datetime.fromtimestamp(usage.oldest_ns / 1e9, UTC)) if usage.oldest_ns is not None else None
        answer = {
            "folder": str(spool_files.folder()),
            "waiting_bytes": usage.waiting_bytes,
            "oldest": since,
            "aside_bytes": usage.aside_bytes,
            "aside": aside,
        }
        waits = f"{usage.waiting_bytes} bytes wait since {since}" if since else "nothing waits"
        self.emit(answer, [f"{spool_files.folder()}: {waits}", *(f"set aside: {name}" for name in aside)])
        return FINDINGS if aside else DONE

    def _drain(self) -> int:
        with alone() as ours:
            if not ours:
                return self._refused("in_use", "a web server of this host drains the spool; there is nothing to do")
            try:
                done = Drain().run()
            except (DatabaseError, InterfaceError) as error:
                return self._refused("database_unavailable", f"the database does not take them: {error_text(error)}")
            finally:
                connections[INGRESS].close()
        self.emit(
            {"drained": dict(done), "refused": []}, [f"{number} {name}" for name, number in done.items()] or ["nothing waits"]
        )
        return FINDINGS if done["refused"] else DONE

    def _retry(self) -> int:
        names = [path.name for path in spool_files.aside_files() if spool_files.requeue(path)]
        self.emit({"retried": names}, [f"waits for the drain again: {name}" for name in names] or ["nothing was refused"])
        return DONE

    def _refused(self, code: str, reason: str) -> int:
        self.emit({"drained": {}, "refused": [refusal("spool", code, reason)]}, [reason])
        return FINDINGS
