"""The verbs `pause` and `resume` of the commands `namespaces`, `packs` and `routes`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors import durations
from connectors.audit_log import cli_actor
from connectors.configuration import pausing
from connectors.configuration.pausing import Kind
from connectors.management.configuration_command import ConfigurationCommand, add_namespace, add_reason
from projection.cli import DONE, FINDINGS, iso
from projection.database import clock
from projection.inspection.backlog import Backlog
from projection.refusals import Refused


class PauseVerbs(ConfigurationCommand):
    """Base of the three commands."""

    def add_pause_verbs(self, verbs: argparse._SubParsersAction[CommandParser], kind: Kind) -> None:
        """Add both verbs for things of `kind`."""
        sub = self.add_verb(
            verbs, "pause", partial(self.pause, kind), f"pause a {kind}: stop execution; deliveries are still accepted and queued"
        )
        sub.add_argument("--until", default=None, metavar="TIME", help="resume automatically: 2h, or 2026-11-30T08:00:00Z")
        for parser in (sub, self.add_verb(verbs, "resume", partial(self.resume, kind), f"resume a paused {kind}")):
            parser.add_argument("name", help=f"the {kind}{' (its key)' if kind == 'route' else ''}")
            if kind != "namespace":
                add_namespace(parser)
            add_reason(parser)

    def pause(self, kind: Kind, *, name: str, reason: str, until: str | None, **options: Any) -> int:
        done = pausing.pause(
            kind,
            options.get("namespace", name),
            name,
            actor=cli_actor(),
            reason=reason or "paused from the command line",
            resume_at=moment(until),
        )
        if isinstance(done, Refused):
            return self._refuse("paused", done)
        ends = f", resumes at {iso(done.resume_at)}" if done.resume_at else ""
        self.emit({"paused": [asdict(done)], "refused": []}, [f"paused: {kind} {name}{ends}", _backlog_line(done.backlog)])
        return DONE

    def resume(self, kind: Kind, *, name: str, reason: str, **options: Any) -> int:
        done = pausing.resume(kind, options.get("namespace", name), name, actor=cli_actor(), reason=reason)
        if isinstance(done, Refused):
            return self._refuse("resumed", done)
        self.emit({"resumed": [asdict(done)], "refused": []}, [f"resumed: {kind} {name}", _backlog_line(done.backlog)])
        return DONE

    def _refuse(self, verb: str, refused: Refused) -> int:
        self.emit({verb: [], "refused": [asdict(refused)]}, [refused.reason])
        return FINDINGS


def moment(text: str | None) -> datetime | None:
    """A duration from now by the database's clock, or an ISO time with its zone. Raises CommandError."""
    if text is None:
        return None
    try:
        return durations.deadline(text, clock.now())
    except ValueError as wrong:
        raise CommandError(f"--until {text}: {wrong}.") from None


def _backlog_line(backlog: Backlog) -> str:
    least = "" if backlog.is_exact else "at least "
    oldest = f", the oldest since {iso(backlog.oldest)}" if backlog.oldest else ""
    return f"waiting: {least}{backlog.count}{oldest}"
