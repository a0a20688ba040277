"""What every command of Headrace shares: `--json`, exit codes, refusals, one way to say that something went wrong.

Exit codes (docs/commands.md): 0 done · 1 findings, partly refused or not found · 2 usage or configuration.
A command is a `HeadraceCommand` with `perform`, or with verbs (`packs list`) that `add_verb` names; either returns its exit code.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError

from projection.logs import quietly

DONE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
READER_GONE: Final = 141
"""What a shell says of a program that SIGPIPE ended, as in `dlq list | head`."""
NARROWEST: Final = 6
"""Characters to which a column of a table may be cut."""
ANY_BYTES: Final = frozenset({"file", "files", "folder", "path", "reason"})
"""Options that may have any bytes: names of files, and a text that is stored escaped."""
LARGEST_BATCH: Final = 1000
"""Of `--batch`, as of HEADRACE_WORKER_BATCH and HEADRACE_ROUTER_BATCH."""

Verb = Callable[..., int]


def refusal(id: str | int, code: str, reason: str) -> dict[str, str]:
    """One refused item, in the form that every command prints."""
    return {"id": str(id), "code": code, "reason": reason}


def batch_size(given: int | None) -> int | None:
    """What `--batch` says; None where it is not given. Raises CommandError for what the setting behind it would not take either."""
    if given is not None and not 1 <= given <= LARGEST_BATCH:
        raise CommandError(f"--batch must be 1 to {LARGEST_BATCH}.")
    return given


def printable(text: str) -> str:
    """Text of foreign origin, safe for a terminal: control characters and lone surrogates are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def iso(moment: datetime | None) -> str | None:
    """A stored time as ISO 8601 in UTC with microseconds, e.g. `2026-11-29T10:00:00.000000Z`; None stays None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def seconds(moment: datetime | None) -> str | None:
    """A stored time for a table, to the second: `2026-11-29T10:00:00Z`."""
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _jsonable(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Decimal):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def to_json(value: object) -> str:
    """ASCII JSON, so that a terminal's encoding (or a lone surrogate in a payload) never breaks the output."""
    return json.dumps(value, default=_jsonable)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a plain table, columns aligned; no row = the single line `none`. On a terminal the widest columns are cut to its width."""
    cells = [[printable("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        return ["none"]
    lines = [list(headers), *cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headers))]
    if sys.stdout.isatty():
        widths = fitted(widths, shutil.get_terminal_size().columns)
    return ["  ".join(_cell(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def fitted(widths: Sequence[int], columns: int) -> list[int]:
    """The widths of a table's columns that fit a terminal: the widest give way first, none below `NARROWEST`."""
    now = list(widths)
    while sum(now) + 2 * (len(now) - 1) > columns and max(now) > NARROWEST:
        now[now.index(max(now))] -= 1
    return now


def _cell(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"


def add_confirmation(parser: argparse.ArgumentParser) -> None:
    """The option that stands for `confirm`."""
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation (required without a terminal)")


def _warned(what: str, lasting: bool) -> str:
    return f"{what}, which cannot be undone" if lasting else what


def demand_reason(what: str, reason: str, *, lasting: bool = True) -> None:
    """Before what cannot be undone (`lasting`), or takes another command to undo.

    `what` says in the third person what would happen (`discards evt:1`). Raises CommandError.
    """
    if not reason.strip():
        raise CommandError(f"This {_warned(what, lasting)}: give the reason for the audit log with --reason.")


def confirm(what: str, typed: object, *, yes: bool, lasting: bool = True) -> None:
    """Before what cannot be undone (`lasting`) or changes much: `--yes` or, on a terminal, `typed` written out (a count, a name).

    `what` as for `demand_reason`. Raises CommandError; nothing was changed then.
    """
    what = _warned(what, lasting)
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(f"This {what}: add --yes to confirm.")
    sys.stderr.write(f"This {printable(what)}. Type {printable(str(typed))} to confirm: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != str(typed):
        raise CommandError("Not confirmed; nothing was changed.")


def cut(lines: Iterable[str], truncated: bool) -> list[str]:
    """The lines of a list, and a last one that says so where `--limit` has cut it."""
    return [*lines, "There are more; use --limit COUNT to see them."] if truncated else list(lines)


class HeadraceCommand(BaseCommand):
    """Base of every command. Subclasses override `perform`, or name verbs with `add_verb` in `add_arguments`."""

    as_json = False
    writes_log = False
    """Whether its log lines are what it is run for, as those of a worker; of any other command they would stand between its answers."""
    # The service's start runs the checks; a command says what it needs itself.
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    def verbs(self, parser: CommandParser) -> argparse._SubParsersAction[CommandParser]:
        """Start the list of verbs of this command; pass it to `add_verb`."""
        return parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add_verb(
        self, verbs: argparse._SubParsersAction[CommandParser], name: str, perform: Verb, description: str
    ) -> CommandParser:
        """Parser of verb `name`, which runs `perform(**options)`; add the verb's own arguments to it."""
        parser = verbs.add_parser(name, help=description, description=description)
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")
        parser.set_defaults(perform=perform)
        return parser

    def perform(self, **options: Any) -> int:
        """Do the work; returns the exit code. Raises CommandError for wrong usage or configuration (exit code 2)."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  # Django's signature
        _refuse_other_encodings(options)
        perform: Verb = options.pop("perform", None) or self.perform
        with nullcontext() if self.writes_log or options.get("verbosity", 1) > 1 else quietly():
            code = perform(**options)
        if code:
            raise SystemExit(code)

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.as_json = bool(options.get("json"))
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            return self._fail("usage", str(error))
        except ImproperlyConfigured as error:
            return self._fail("configuration", str(error))
        except (InterfaceError, OperationalError) as error:
            return self._fail("database", f"Database error: {error}. Check HEADRACE_DATABASE_URL and that the server is running.")

    def _fail(self, code: str, reason: str) -> str | None:
        """End with exit code 2: as a JSON object on stdout with `--json`, else as one line on stderr."""
        if not self.as_json:
            raise CommandError(reason, returncode=USAGE) from None
        self.stdout.write(to_json({"error": {"code": code, "reason": reason}}))
        raise SystemExit(USAGE) from None

    def emit(self, answer: Mapping[str, Any], lines: Iterable[str] = ()) -> None:
        """Print the answer: the object with `--json`, else the lines."""
        try:
            for line in [to_json(answer)] if self.as_json else map(printable, lines):
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:
            _reader_is_gone()


def _refuse_other_encodings(options: Mapping[str, Any]) -> None:
    """Raises CommandError for an argument of the shell's that is not UTF-8: Python hands its bytes on as lone surrogates."""
    for name, value in options.items():
        texts = [one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, str)]
        if name not in ANY_BYTES and any("\ud800" <= character <= "\udfff" for text in texts for character in text):
            raise CommandError(f"{name.replace('_', '-')}: {printable(' '.join(texts))} is not UTF-8 text; type it in UTF-8.")


def _reader_is_gone() -> NoReturn:
    """End quietly. What Python still flushes at its end goes nowhere, or it would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(READER_GONE)
