"""The command line of `script/manage`: Headrace's commands with what they do, Django's and the libraries' apart."""

from __future__ import annotations

import textwrap
from typing import Final

from django.core.management import ManagementUtility, get_commands, load_command_class

OURS: Final = ("connectors", "projection", "ops_ui")
NAME: Final = "script/manage"
HELP_COLUMNS: Final = 80


class CommandLine(ManagementUtility):
    """Django's, under the name that people type."""

    def __init__(self, argv: list[str]) -> None:
        super().__init__(argv)
        self.prog_name = NAME

    def main_help_text(self, commands_only: bool = False) -> str:
        """`help`; with `commands_only`, a name a line for scripts."""
        commands = get_commands()
        if commands_only:
            return "\n".join(sorted(commands))
        ours = sorted(name for name, app in commands.items() if app in OURS)
        others = sorted(name for name in commands if name not in ours)
        width = max(map(len, ours))
        return "\n".join(
            [
                f"usage: {NAME} COMMAND [ARGUMENT…]   options: {NAME} COMMAND --help",
                "",
                *(_line(name, load_command_class(str(commands[name]), name).help, width) for name in ours),
                "",
                *textwrap.wrap(f"From Django and libraries: {', '.join(others)}", HELP_COLUMNS),
            ]
        )


def _line(name: str, help: str, width: int) -> str:
    first = help.partition(". ")[0].partition(": ")[0].rstrip(".")
    return f"  {name.ljust(width)}  {textwrap.shorten(first, HELP_COLUMNS - width - 4, placeholder='…')}"
