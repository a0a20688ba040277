"""`health`: what `/readyz` and `/progressz` say, as a command for cron and for scripts; it needs no web server."""

from __future__ import annotations

from typing import Any, Final

from ops_ui.monitoring import health
from projection.cli import DONE, HeadraceCommand

NOT_PROGRESSING: Final = 1
NOT_READY: Final = 2


class Command(HeadraceCommand):
    help = (
        "Checks whether the installation is ready and progressing. Exit code 0: healthy; 1: not progressing; 2: not ready "
        "(database, migrations or protocol). Prints a reason for each thing that is wrong."
    )

    def perform(self, **_options: Any) -> int:
        found = health.look()
        self.emit(
            {"ready": found.is_ready, "progressing": found.is_progressing, "reasons": found.reasons},
            [f"{one['code']}: {one['reason']}" for one in found.reasons] or ["ready and progressing"],
        )
        if not found.is_ready:
            return NOT_READY
        return DONE if found.is_progressing else NOT_PROGRESSING
