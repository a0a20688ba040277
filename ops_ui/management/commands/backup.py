"""`backup FOLDER`: the database as of now, the spool and a manifest, in a new folder below FOLDER, while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from ops_ui.backup.backup import DATABASE, BackupFailed, backup
from ops_ui.backup.database_programs import NoProgram
from projection.cli import DONE, FINDINGS, HeadraceCommand, refusal


class Command(HeadraceCommand):
    help = "Backs up the database and this host's spool. Encryption keys are not included; keep them elsewhere."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "folder", type=Path, metavar="FOLDER", help="parent folder of the new backup folder, which is named by the time"
        )

    def perform(self, **options: Any) -> int:
        folder: Path = options["folder"]
        try:
            made = backup(folder)
        except NoProgram as error:
            raise CommandError(str(error)) from None
        except BackupFailed as error:
            self.emit({"backup": None, "refused": [refusal(str(folder), "failed", str(error))]}, [str(error)])
            return FINDINGS
        size = (made / DATABASE).stat().st_size
        self.emit(
            {"backup": str(made), "database_bytes": size, "refused": []},
            [f"{made} ({size} bytes of database). It does not contain HEADRACE_ENCRYPTION_KEYS; keep them in another place."],
        )
        return DONE
