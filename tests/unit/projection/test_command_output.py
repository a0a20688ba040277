"""Output and exit codes that all commands share."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError

from projection.cli import HeadraceCommand, cut, fitted, iso, printable, table, to_json
from projection.states import State


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Sample(HeadraceCommand):
    def add_arguments(self, parser):
        verbs = self.verbs(parser)
        self.add_verb(verbs, "good", self.good, "ends well")
        self.add_verb(verbs, "cut", self.cut, "shows a part")
        self.add_verb(verbs, "partly", self.partly, "finds something")
        self.add_verb(verbs, "bad", self.bad, "is refused")
        self.add_verb(verbs, "unset", self.unset, "lacks a setting")

    def good(self, **options):
        self.emit({"items": [1], "at": datetime(2026, 1, 2, tzinfo=UTC)}, ["one \x1b[31mitem"])
        return 0

    def cut(self, **options):
        self.emit({"items": [1], "truncated": True}, cut(["one item"], truncated=True))
        return 0

    def partly(self, **options):
        self.emit({"ok": False})
        return 1

    def bad(self, **options):
        raise CommandError("no such thing; try another")

    def unset(self, **options):
        raise ImproperlyConfigured("HEADRACE_X is not set")


def run(*arguments: str) -> tuple[str, int]:
    out = io.StringIO()
    try:
        call_command(Sample(), *arguments, stdout=out)
    except SystemExit as end:
        return out.getvalue(), int(end.code or 0)
    return out.getvalue(), 0


@pytest.mark.parametrize("arguments", [("good", "--json"), ("--json", "good")])
def test_json_flag_stands_before_or_after_the_verb(arguments):
    text, code = run(*arguments)
    assert json.loads(text) == {"items": [1], "at": "2026-01-02T00:00:00.000000Z"}
    assert code == 0


def test_a_list_that_is_cut_says_so():
    assert run("cut") == ("one item\nThere are more; use --limit COUNT to see them.\n", 0)
    assert json.loads(run("cut", "--json")[0]) == {"items": [1], "truncated": True}


LONG = """
from django.conf import settings
settings.configure()
from django.core.management import call_command
from projection.cli import HeadraceCommand
class Long(HeadraceCommand):
    def perform(self, **options):
        self.emit({}, ["line"] * 100_000)
        return 0
call_command(Long())
"""


def test_a_reader_that_goes_away_ends_the_command_without_a_traceback():
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"line\n"
        command.stdout.close()
        assert command.stderr.read() == b""
    assert command.returncode == 141


def test_lines_for_people_escape_terminal_controls():
    assert run("good") == ("one \\x1b[31mitem\n", 0)


def test_findings_exit_with_1():
    assert run("partly", "--json") == ('{"ok": false}\n', 1)


@pytest.mark.parametrize(("verb", "code"), [("bad", "usage"), ("unset", "configuration")])
def test_usage_and_configuration_errors_exit_with_2_and_a_json_object(verb, code):
    text, exit_code = run(verb, "--json")
    assert exit_code == 2
    assert json.loads(text)["error"]["code"] == code


def test_without_json_the_error_is_a_command_error_of_code_2():
    with pytest.raises(CommandError, match="no such thing; try another") as caught:
        run("bad")
    assert caught.value.returncode == 2


def test_values_have_a_lossless_json_form():
    assert json.loads(to_json({"n": Decimal("1.10"), "s": {"b", "a"}, "t": "\udc88"})) == {
        "n": "1.10",
        "s": ["a", "b"],
        "t": "\udc88",
    }
    assert iso(None) is None
    assert printable("é🎩\udc88\n") == "é🎩\\udc88\\n"


def test_table_aligns_columns_and_says_none():
    assert table(["name", "n"], [("a", 1), ("long", None)]) == ["name  n", "a     1", "long"]
    assert table(["name"], []) == ["none"]


def test_a_table_fits_the_terminal_by_its_widest_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitted([16, 20, 40, 90], 80) == [16, 19, 19, 20]
    assert fitted([3, 4], 80) == [3, 4]
    assert fitted([40, 40], 5) == [6, 6]
    monkeypatch.setattr("sys.stdout", _Terminal())
    monkeypatch.setenv("COLUMNS", "20")
    assert table(["id", "error"], [("evt:1", "the receiver answered 503")]) == ["id     error", "evt:1  the receiver…"]


@pytest.mark.parametrize("error", [OperationalError(2002, "Can't connect"), InterfaceError("connection already closed")])
def test_a_database_that_is_away_ends_with_2_and_says_what_to_check(error):
    class Away(HeadraceCommand):
        def perform(self, **options):
            raise error

    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(Away(), "--json", stdout=out)
    assert ended.value.code == 2
    answer = json.loads(out.getvalue())["error"]
    assert answer["code"] == "database"
    assert str(error) in answer["reason"]
    assert "HEADRACE_DATABASE_URL" in answer["reason"]
    with pytest.raises(CommandError, match="Check HEADRACE_DATABASE_URL") as caught:
        call_command(Away(), stdout=out)
    assert caught.value.returncode == 2


@dataclass(frozen=True)
class Answer:
    state: State
    at: datetime


def test_states_and_dataclasses_are_written_by_their_values():
    text = to_json({"found": Answer(State.DEAD, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)), "state": State.RETRY})
    assert json.loads(text) == {"found": {"state": "dead", "at": "2026-01-02T03:04:05.000006Z"}, "state": "retry"}


def test_a_value_without_json_form_is_refused_by_its_type():
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        to_json({"a": object()})
