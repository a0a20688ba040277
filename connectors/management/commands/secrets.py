"""`secrets rewrap`: encrypt every stored secret again under the first key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from connectors.audit_log import cli_actor
from connectors.management.configuration_command import ConfigurationCommand
from connectors.operations.rewrap import rewrap
from projection.cli import DONE, FINDINGS, refusal


class Command(ConfigurationCommand):
    help = "Re-encrypts stored secrets. To change keys: put the new key first, run `secrets rewrap`, then remove the old key."

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_verb(
            self.verbs(parser), "rewrap", self.rewrap, "encrypt every stored secret with the first key of HEADRACE_ENCRYPTION_KEYS"
        )

    def rewrap(self, **_options: Any) -> int:
        done = rewrap(actor=cli_actor())
        refused = [refusal(f"{each.kind} {each.name}", "unreadable", each.reason) for each in done.unreadable]
        lines = [f"{done.rows} secrets are encrypted with the first key"]
        lines += [f"{each['id']}: {each['reason']}" for each in refused]
        if done.changed_meanwhile:
            lines.append(f"{done.changed_meanwhile} secrets changed during the run; run it again")
        self.emit({"rewrapped": done.rows, "changed_meanwhile": done.changed_meanwhile, "refused": refused}, lines)
        return FINDINGS if refused or done.changed_meanwhile else DONE
