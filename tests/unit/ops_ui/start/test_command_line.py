"""`script/manage help`."""

from __future__ import annotations

from ops_ui.start.command_line import HELP_COLUMNS, CommandLine


def test_help_lists_our_commands_with_what_they_do_and_the_others_apart() -> None:
    text = CommandLine(["manage", "help"]).main_help_text()
    lines = text.splitlines()
    assert lines[0].startswith("usage: script/manage COMMAND")
    assert max(map(len, lines)) <= HELP_COLUMNS
    ours = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert {"dlq", "work", "config", "health", "run_worker"} <= ours.keys()
    assert "Lists dead letters" in ours["dlq"]
    assert "makemigrations" not in ours
    assert "makemigrations" in text.partition("From Django and libraries")[2]


def test_scripts_get_a_name_a_line() -> None:
    assert "dlq" in CommandLine(["manage", "help", "--commands"]).main_help_text(commands_only=True).splitlines()
