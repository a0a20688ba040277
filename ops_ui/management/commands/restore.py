"""`restore FOLDER`: a backup into an empty database and an empty spool."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from connectors import audit_log
from connectors.configuration import pausing
from connectors.models import Namespace
from connectors.operations import bulk_jobs
from ops_ui.backup.database_programs import NoProgram
from ops_ui.backup.restore import NotRestored, restore
from projection.bulk import jobs
from projection.bulk.job_rows import JobState
from projection.cli import DONE, FINDINGS, HeadraceCommand, refusal
from projection.safe_text import error_text

JOBS_LOOKED_AT: Final = 10_000
"""Newest bulk jobs among which the running ones are paused: far more than ever run at once."""


class Command(HeadraceCommand):
    help = "Restores a backup into an empty database and an empty spool, with the encryption keys that it was made with."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder that contains manifest.json")
        parser.add_argument(
            "--paused",
            action="store_true",
            help="pause every namespace and bulk job, so that a copy beside the original executes nothing",
        )
        parser.add_argument("--without-keys", action="store_true", help="continue even if encryption keys are missing")

    def perform(self, **options: Any) -> int:
        folder: Path = options["folder"]
        try:
            manifest, unreadable = restore(folder, without_keys=options["without_keys"])
        except NoProgram as error:
            raise CommandError(str(error)) from None
        except NotRestored as error:
            self.emit({"restored": None, "refused": [refusal(str(folder), "not_restored", str(error))]}, [str(error)])
            return FINDINGS
        with suppress(DatabaseError):  # an older schema, before its migration, may not take it
            audit_log.record(audit_log.cli_actor(), "backup.restore", manifest.made_at, detail={"unreadable": len(unreadable)})
        paused, refused = _pause_all() if options["paused"] else ([], [])
        self.emit(
            {
                "restored": str(folder),
                "made_at": manifest.made_at,
                "unreadable_secrets": unreadable,
                "paused": paused,
                "refused": refused,
            },
            [
                f"restored the state of {manifest.made_at}, with {manifest.spool_files} spool files",
                *unreadable,
                *(f"paused: namespace {name} (`namespaces resume {name}` ends the pause)" for name in paused),
                *(one["reason"] for one in refused),
                "Next: migrate if this version is newer, run audit, start the service. Have providers resend what came after the backup.",
            ],
        )
        return FINDINGS if unreadable or refused else DONE


def _pause_all() -> tuple[list[str], list[dict[str, str]]]:
    """Pause every namespace and running bulk job of what was restored; the namespaces, and a refusal where they could not be."""
    actor, because = audit_log.cli_actor(), "restored with --paused"
    try:
        names = list(Namespace.objects.order_by("name").values_list("name", flat=True))
        for name in names:
            pausing.pause("namespace", name, name, actor=actor, reason=because)
        for job in jobs.newest(JOBS_LOOKED_AT):
            if job.state is JobState.RUNNING:
                bulk_jobs.pause(job.id, actor=actor, reason=because)
    except DatabaseError as error:
        reason = (
            f"Nothing could be paused ({error_text(error)}); migrate first, then run `namespaces pause` before the service starts."
        )
        return [], [refusal("paused", "not_paused", reason)]
    return names, []
