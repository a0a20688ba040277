"""The claim worker outside django-q2: `run_worker [--drain] [--batch N]`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from projection.cli import DONE, HeadraceCommand, batch_size
from projection.execution.stuck_threads import leave_if_stuck
from projection.execution.worker import claim_loop, drain_claims
from projection.runtime.stop_flag import stop_on_signals


class Command(HeadraceCommand):
    writes_log = True
    help = "Runs due work. With --drain: everything that is due now, then exits; otherwise until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--drain", action="store_true", help="exit when nothing is due")
        parser.add_argument("--batch", type=int, help="maximum number of items taken at a time (default: HEADRACE_WORKER_BATCH)")

    def perform(self, **options: Any) -> int:
        batch = batch_size(options["batch"])
        with stop_on_signals() as stop:
            loop = drain_claims if options["drain"] else claim_loop
            attempts = loop(batch=batch, stop=stop)
        self.emit({"attempts": attempts}, [f"{attempts} attempts"])
        leave_if_stuck()
        return DONE
