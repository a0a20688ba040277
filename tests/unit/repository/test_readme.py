"""What README and docs say to write is what the product reads."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from connectors.configuration.file import parse
from ops_ui.config.environment import SETTINGS

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS_PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
PAGES = "\n".join([README, SETTINGS_PAGE, COMMANDS_PAGE, (ROOT / "docs" / "your-own-pack.md").read_text(encoding="utf-8")])
EXAMPLES = re.findall(r"(?:```toml|<<'EOF')\n(.*?)(?:```|^EOF)", PAGES, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.splitlines()[0][2:15] for example in EXAMPLES])
def test_each_configuration_is_valid(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"env:(\w+)", example):
        monkeypatch.setenv(name, "whsec_" + "A" * 44)
    assert parse(example).routes


def test_the_table_of_settings_is_complete() -> None:
    rows = re.findall(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", SETTINGS_PAGE, re.MULTILINE)
    assert sorted(re.findall(r"[A-Z_]+", " ".join(rows))) == sorted(SETTINGS)


SHELL = "\n".join(re.findall(r"^```\n(.*?)```", PAGES, re.DOTALL | re.MULTILINE))
CALLS = re.findall(r"^(?:\w+=\S+ )?(script/manage .+)$", SHELL, re.MULTILINE)
ON_CALL = COMMANDS_PAGE.partition("## On call")[2].partition("\n## ")[0]
LONGEST_README = 130
"""Lines: short enough to be read to the end."""


def test_the_readme_names_the_two_commands_and_is_short() -> None:
    assert "\nscript/server " in README
    assert "\nscript/test " in README
    assert len(README.splitlines()) <= LONGEST_README


@pytest.mark.parametrize("line", CALLS)
def test_each_command_of_the_tour_is_understood(line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    parser(name).parse_args(arguments)


def test_the_table_for_operators_on_call_names_what_there_is() -> None:
    rows = re.findall(r"^\| (`.+?) \|", ON_CALL, re.MULTILINE)
    assert len(rows) > 10
    for row in rows:
        name = ""
        for text in re.findall(r"`([^`]+)`", row):
            words = text.split()
            if words[0] in get_commands():
                name = words.pop(0)
            known = verbs(name)
            assert not known or not words or words[0] in known or text in get_commands(), (row, text)


def parser(name: str) -> argparse.ArgumentParser:
    return load_command_class(get_commands()[name], name).create_parser("manage.py", name)


def verbs(name: str) -> set[str]:
    """Of a command that has some."""
    return {verb for action in parser(name)._actions if isinstance(action.choices, dict) for verb in action.choices}
