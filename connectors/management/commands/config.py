"""`config apply FILE`, `config export`, `config diff FILE`: configuration as code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from connectors.audit_log import cli_actor
from connectors.configuration import export
from connectors.configuration.apply import apply
from connectors.configuration.file import read
from connectors.configuration.report import Extra, Report, Step
from connectors.management.configuration_command import ConfigurationCommand, add_missing_code, add_namespace, add_reason
from projection.cli import DONE, FINDINGS, add_confirmation, confirm, demand_reason, printable


class Command(ConfigurationCommand):
    help = "Applies a configuration file, exports one, or shows where the database differs from it."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.verbs(parser)
        apply = self.add_verb(verbs, "apply", self.apply, "apply a file to the database; applying it again changes nothing")
        apply.add_argument("file", help="TOML file")
        apply.add_argument("--dry-run", action="store_true", help="show what would change; change nothing")
        apply.add_argument("--prune", action="store_true", help="also remove what the file does not name")
        add_reason(apply)
        add_confirmation(apply)
        diff = self.add_verb(verbs, "diff", self.diff, "show where the database differs from the file; exit code 1 if it does")
        diff.add_argument("file", help="TOML file")
        for sub in (apply, diff):
            add_missing_code(sub)
        add_namespace(self.add_verb(verbs, "export", self.export, "print the configuration of a namespace as TOML"))

    def apply(
        self, *, file: str, dry_run: bool, prune: bool, reason: str, yes: bool, allow_missing_code: bool, **_options: Any
    ) -> int:
        configuration = read(file)
        act = partial(apply, configuration, actor=cli_actor(), allow_missing_code=allow_missing_code)
        extras = self._to_prune(act(dry_run=True).extras, reason, yes=yes, dry_run=dry_run) if prune else ()
        report = act(reason=reason, dry_run=dry_run, prune=extras)
        self.emit(_as_json(report), _lines(report))
        return DONE

    def _to_prune(self, extras: tuple[Extra, ...], reason: str, *, yes: bool, dry_run: bool) -> tuple[Extra, ...]:
        """What the file does not name, confirmed. Raises CommandError; nothing was changed then."""
        if extras and not dry_run:
            if not self.as_json:
                self.stderr.writelines(f"to be removed: {printable(f'{extra.kind} {extra.name}')}\n" for extra in extras)
            what = f"removes {len(extras)} item{'' if len(extras) == 1 else 's'} that the file does not name"
            demand_reason(what, reason)
            confirm(what, len(extras), yes=yes)
        return extras

    def diff(self, *, file: str, allow_missing_code: bool, **_options: Any) -> int:
        report = apply(read(file), actor=cli_actor(), dry_run=True, allow_missing_code=allow_missing_code)
        lines = [*_changes(report), *(f"not in the file: {extra.kind} {extra.name}" for extra in report.extras)]
        self.emit({"drift": report.is_drift, **_as_json(report)}, lines or ["no drift"])
        return FINDINGS if report.is_drift else DONE

    def export(self, *, namespace: str, **_options: Any) -> int:
        table = export.as_table(namespace)
        text = export.as_toml(table)
        if self.as_json:
            self.emit({"configuration": table, "toml": text})
        else:
            self.stdout.write(text, ending="")
        return DONE


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "namespace": report.namespace,
        "dry_run": report.dry_run,
        "created": _steps(report.of("created")),
        "changed": _steps(report.of("changed")),
        "unchanged": _steps(report.of("unchanged")),
        "removed": _steps(report.of("removed")),
        "extras": [asdict(extra) for extra in report.extras],
        "warnings": list(report.warnings),
    }


def _steps(steps: Iterable[Step]) -> list[dict[str, Any]]:
    return [{"kind": step.kind, "name": step.name, "changes": list(step.changes)} for step in steps]


def _changes(report: Report) -> Iterator[str]:
    for step in report.steps:
        if step.outcome != "unchanged":
            detail = f": {'; '.join(step.changes)}" if step.changes else ""
            yield f"{step.outcome} {step.kind} {step.name}{detail}"


def _lines(report: Report) -> Iterator[str]:
    yield from _changes(report)
    yield from (f"warning: {warning}" for warning in report.warnings)
    counts = ", ".join(f"{len(report.of(outcome))} {outcome}" for outcome in ("created", "changed", "unchanged", "removed"))
    yield f"namespace {report.namespace}: {counts}{' (dry run: nothing was changed)' if report.dry_run else ''}"
