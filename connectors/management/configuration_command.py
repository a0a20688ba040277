"""Base of the configuration commands: namespace, reason, and how refusals of the modules below become output and exit codes."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser

from connectors.configuration.change import DEFAULT_NAMESPACE, ConfigurationRefused, NotFound
from connectors.configuration.errors import BadConfiguration
from connectors.secrets import NoEncryptionKey, SecretsUnreadable
from projection.cli import FINDINGS, USAGE, HeadraceCommand, printable, refusal, to_json


def add_namespace(parser: CommandParser) -> None:
    parser.add_argument("--namespace", default=DEFAULT_NAMESPACE, help="namespace (default: %(default)s)")


def add_reason(parser: CommandParser) -> None:
    parser.add_argument("--reason", default="", help="reason, for the audit log")


def add_missing_code(parser: CommandParser) -> None:
    parser.add_argument(
        "--allow-missing-code", action="store_true", help="accept flows that are not installed on this host: their work waits"
    )


class ConfigurationCommand(HeadraceCommand):
    """A thing that is not there ends with exit code 1, a change that is refused with 2."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except NotFound as missing:
            self._not_found(str(options.get("name", "")), str(missing))
        except BadConfiguration as bad:
            self._bad_file(bad)
        except (ConfigurationRefused, SecretsUnreadable, NoEncryptionKey) as refused:
            raise ImproperlyConfigured(str(refused)) from None

    def _not_found(self, name: str, reason: str) -> None:
        if self.as_json:
            self.stdout.write(to_json({"refused": [refusal(name, "not_found", reason)]}))
        else:
            self.stderr.write(printable(reason))
        raise SystemExit(FINDINGS) from None

    def _bad_file(self, bad: BadConfiguration) -> None:
        if not self.as_json:
            raise CommandError("\n".join(printable(problem) for problem in bad.problems), returncode=USAGE) from None
        error = {"code": "configuration", "reason": bad.problems[0], "problems": bad.problems}
        self.stdout.write(to_json({"error": error}))
        raise SystemExit(USAGE) from None
