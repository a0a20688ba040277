"""Checks the canonical schema and writes the protocol checkpoint: `activate_projection`."""

from __future__ import annotations

import getpass
from typing import Any

from projection.admission.activation import NotActivatable, activate
from projection.cli import DONE, FINDINGS, HeadraceCommand


class Command(HeadraceCommand):
    help = (
        "Checks that every required column exists and activates the projection protocol for this database; lists what is missing."
    )

    def perform(self, **options: Any) -> int:  # noqa: ARG002  # the base's signature
        try:
            checkpoint = activate(f"cli:{getpass.getuser()}")
        except NotActivatable as error:
            self.emit({"activated": False, "reason": str(error)}, [str(error)])
            return FINDINGS
        self.emit({"activated": True, "protocol_version": checkpoint.version}, [f"protocol {checkpoint.version} is active"])
        return DONE
