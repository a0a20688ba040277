"""What cannot be undone: a reason, and a confirmation that nobody gives by mistake."""

from __future__ import annotations

import io

import pytest
from django.core.management.base import CommandError

from projection.cli import confirm, demand_reason


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def asked(monkeypatch: pytest.MonkeyPatch, answer: str) -> str:
    """What is asked on a terminal on which `answer` is typed."""
    said = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", said)
    confirm("discards 523 dead letters", 523, yes=False)
    return said.getvalue()


def test_on_a_terminal_the_count_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, "523\n") == "This discards 523 dead letters, which cannot be undone. Type 523 to confirm: "


@pytest.mark.parametrize("answer", ["", "\n", "y\n", "yes\n", "52\n", "5230\n", "523 dead letters\n"])
def test_any_other_answer_changes_nothing(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    with pytest.raises(CommandError, match="Not confirmed; nothing was changed"):
        asked(monkeypatch, answer)


def test_without_a_terminal_it_takes_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("523\n"))
    with pytest.raises(CommandError, match="which cannot be undone: add --yes to confirm"):
        confirm("discards 523 dead letters", 523, yes=False)
    confirm("discards 523 dead letters", 523, yes=True)


@pytest.mark.parametrize("reason", ["", " \t"])
def test_a_reason_is_demanded(reason: str) -> None:
    with pytest.raises(CommandError, match="This discards evt:1, which cannot be undone: give the reason"):
        demand_reason("discards evt:1", reason)
    demand_reason("discards evt:1", "vendor gone")


def test_what_can_be_taken_back_is_not_called_lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(CommandError, match=r"^This discards 523 dead letters: add --yes to confirm\.$"):
        confirm("discards 523 dead letters", 523, yes=False, lasting=False)
    with pytest.raises(CommandError, match=r"^This discards evt:1: give the reason for the audit log with --reason\.$"):
        demand_reason("discards evt:1", "", lasting=False)
