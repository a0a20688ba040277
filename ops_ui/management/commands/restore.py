"""`restore FOLDER`: a backup into an empty database and an empty spool."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from connectors import audit_log
from ops_ui.backup.database_programs import NoProgram
from ops_ui.backup.restore import NotRestored, restore
from projection.cli import DONE, FINDINGS, HeadraceCommand, refusal


class Command(HeadraceCommand):
    help = "Restores a backup into an empty database and an empty spool, with the encryption keys that it was made with."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder that contains manifest.json")
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
        self.emit(
            {"restored": str(folder), "made_at": manifest.made_at, "unreadable_secrets": unreadable, "refused": []},
            [
                f"restored the state of {manifest.made_at}, with {manifest.spool_files} spool files",
                *unreadable,
                "Next: migrate if this version is newer, run audit, start the service. Have providers resend what came after the backup.",
            ],
        )
        return FINDINGS if unreadable else DONE
