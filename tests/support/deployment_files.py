"""Reads the examples under docs/deployment: units of systemd, the environment file, the configuration of nginx."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from ops_ui.config.environment import CHECKOUT

FOLDER = CHECKOUT / "docs" / "deployment"
UNITS = FOLDER / "systemd"
COMMON = UNITS / "headrace-.service.d" / "common.conf"
INSTALLED = "/opt/headrace"
PYTHON = f"{INSTALLED}/.venv/bin/python"

Directives = list[tuple[str, str, str]]
"""(section, name, value) in the order of the file; a name may stand several times."""


def directives(path: Path) -> Directives:
    """What a unit says. Raises AssertionError for a line that systemd would not understand."""
    found: Directives = []
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if heading := re.fullmatch(r"\[([A-Z]\w+)\]", line):
            section = heading[1]
            continue
        assert section, f"{path.name}: {line!r} stands in no section"
        assignment = re.fullmatch(r"([A-Z]\w+)=(.*)", line)
        assert assignment is not None, f"{path.name}: {line!r} is no directive"
        found.append((section, assignment[1], assignment[2].strip()))
    return found


def values(path: Path, name: str) -> list[str]:
    """Every value of a directive, e.g. each ExecStart."""
    return [value for _, found, value in directives(path) if found == name]


def value(path: Path, name: str) -> str:
    (found,) = values(path, name)
    return found


def python_arguments(path: Path) -> list[list[str]]:
    """The arguments of each ExecStart, which all run the installation's Python."""
    commands = [shlex.split(command) for command in values(path, "ExecStart")]
    assert all(command[0] == PYTHON for command in commands)
    return [command[1:] for command in commands]


def environment() -> dict[str, str]:
    """The example of the environment file, as systemd reads it."""
    lines = (FOLDER / "headrace.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def nginx(name: str) -> list[str]:
    """The arguments of every occurrence of a directive."""
    text = (FOLDER / "nginx.conf").read_text(encoding="utf-8")
    return re.findall(rf"^\s*{name}\s+(.*);$", text, re.MULTILINE)
