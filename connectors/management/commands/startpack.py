"""`startpack NAME [--into FOLDER]`: write a connector pack to begin with. Needs no database."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from connectors.registry import scaffold
from projection.cli import DONE, HeadraceCommand


class Command(HeadraceCommand):
    help = "Creates a connector package of your own: pack, flow, configuration, fixture and passing tests."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the pack and its Python package, such as acme_shop")
        parser.add_argument(
            "--into", type=Path, default=Path(), metavar="FOLDER", help="parent folder (default: the current folder)"
        )

    def perform(self, **options: Any) -> int:
        name: str = options["name"]
        into: Path = options["into"]
        try:
            files = scaffold.write(name, into)
        except scaffold.CannotStart as error:
            raise CommandError(str(error)) from None
        folder = into.resolve()
        steps = [
            f"export HEADRACE_APPS={name} PYTHONPATH={shlex.quote(str(folder))}",
            f"script/manage test {name}",
            f"{scaffold.Names.of(name).variable}_SECRET=… script/manage config apply {shlex.quote(str(folder / name / f'{name}.toml'))}",
            "script/server",
        ]
        answer = {"package": str(folder / name), "files": [path.name for path in files], "next": steps}
        self.emit(answer, [*(f"{path}" for path in files), "", "next:", *(f"  {step}" for step in steps)])
        return DONE
