"""One line per verb, with the same field names, and never a payload."""

from __future__ import annotations

import ast
import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from projection.logs import FIELDS, HIDDEN, HIDDEN_FIELDS, LONGEST_TEXT, Level, configure, log_event, quietly
from projection.runtime.library_log import LibraryLine


def line_of(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    parsed: dict[str, object] = json.loads(lines[0])
    return parsed


def test_a_line_is_one_json_object_with_verb_level_and_utc_time(capsys: pytest.CaptureFixture[str]) -> None:
    log_event("complete", work_id="csp:1", state="processed", attempt=2)
    line = line_of(capsys)
    assert (line["event"], line["level"], line["work_id"], line["attempt"]) == ("complete", "info", "csp:1", 2)
    assert datetime.fromisoformat(str(line["timestamp"])).tzinfo == UTC


def test_fields_come_in_the_same_order_whatever_the_caller_writes(capsys: pytest.CaptureFixture[str]) -> None:
    log_event("claim", attempt=1, custom="x", work_id="csp:1", namespace="demo")
    assert list(line_of(capsys))[2:] == ["event", "namespace", "work_id", "attempt", "custom"]


def test_absent_fields_are_left_out_but_zero_stays(capsys: pytest.CaptureFixture[str]) -> None:
    log_event("route", count=0, reason=None)
    line = line_of(capsys)
    assert line["count"] == 0
    assert "reason" not in line


@pytest.mark.parametrize("name", ["payload", "secret", "headers", "body", "value", "cookie", "token", "url"])
def test_a_field_that_would_carry_content_is_hidden(capsys: pytest.CaptureFixture[str], name: str) -> None:
    log_event("receive", **{name: "jane@example.com"})
    assert line_of(capsys)[name] == HIDDEN


def test_hostile_text_stays_inside_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    log_event("retry", level="warning", error='a\n{"event": "forged"}\x1b[2J\udc88' + "x" * 5_000)
    line = line_of(capsys)
    assert line["event"] == "retry"
    assert len(str(line["error"])) < LONGEST_TEXT + 40


def test_a_terminal_gets_readable_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    log_event("complete", work_id="csp:1")
    text = capsys.readouterr().err
    assert "complete" in text
    assert not text.startswith("{")


def test_work_that_is_summed_up_afterwards_writes_its_warnings_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with quietly():
        log_event("receive", receipt_id=1)
        log_event("unverified", level="warning", receipt_id=2)
    log_event("receive", receipt_id=3)
    assert [json.loads(line)["receipt_id"] for line in capsys.readouterr().err.splitlines()] == [2, 3]


def test_a_librarys_record_is_a_line_of_the_same_form() -> None:
    try:
        raise ValueError("x" * LONGEST_TEXT)
    except ValueError:
        record = logging.LogRecord("django.request", logging.ERROR, "", 1, "Service\n%s", ("/readyz",), sys.exc_info())
    line = LibraryLine().format(record)
    written = json.loads(line)
    assert "\n" not in line
    assert (written["level"], written["event"], written["logger"], written["text"]) == (
        "error",
        "log",
        "django.request",
        "Service\n/readyz",
    )
    assert written["error"] == "x" * LONGEST_TEXT
    assert written["timestamp"].endswith("Z")


def test_a_librarys_record_on_a_terminal_has_the_form_of_the_others_and_its_whole_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    try:
        raise ValueError("x" * LONGEST_TEXT)
    except ValueError:
        record = logging.LogRecord("django", logging.WARNING, "", 1, "text", (), sys.exc_info())
    first, _, traceback = LibraryLine("%(message)s").format(record).partition("\n")
    assert "warning" in first
    assert "text" in first
    assert traceback.startswith("Traceback")


@pytest.mark.parametrize(("level", "written"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_is_a_setting(capsys: pytest.CaptureFixture[str], level: Level, written: int) -> None:
    configure(level)
    try:
        for each in ("debug", "info", "warning", "error"):
            log_event("receive", level=each)
        with quietly():
            log_event("receive", level="info")
            log_event("receive", level="error")
    finally:
        configure()
    assert len(capsys.readouterr().err.splitlines()) == written + 1


def test_the_form_is_a_setting(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        configure(form="text")
        log_event("receive")
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        configure(form="json")
        log_event("receive")
    finally:
        configure()
    text, line = capsys.readouterr().err.splitlines()
    assert not text.startswith("{")
    assert json.loads(line)["event"] == "receive"


def calls_of_log_event() -> list[tuple[str, list[str | None]]]:
    """Where each event is written, and the names of its fields (None: names that only running tells)."""
    root = Path(__file__).parents[3]
    return [
        (f"{path.relative_to(root)}:{node.lineno}", [keyword.arg for keyword in node.keywords])
        for package in ("projection", "connectors", "ops_ui")
        for path in (root / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "log_event"
    ]


def test_every_event_uses_the_same_field_names() -> None:
    """A field of another name: look for the one in FIELDS that means the same, or add it there."""
    known = {*FIELDS, "level", "rows"}
    assert len(calls_of_log_event()) > 50
    assert [(place, set(names) - known) for place, names in calls_of_log_event() if set(names) - known] == []


def test_no_field_is_both_shown_and_hidden() -> None:
    assert set(FIELDS) & HIDDEN_FIELDS == set()


@pytest.mark.parametrize(("number", "traced"), [(2003, False), (2006, False), (1290, False), (1054, True)])
def test_a_library_that_tells_of_an_outage_needs_no_traceback(number: int, traced: bool) -> None:
    """Again and again, for as long as it lasts, from every process; another error of the database is somebody's fault."""
    from django.db import OperationalError

    try:
        raise OperationalError(number, "what the server said")
    except OperationalError:
        record = logging.LogRecord("django-q", logging.ERROR, "", 0, "Failed to pull task from broker", (), sys.exc_info())
    line = json.loads(LibraryLine().format(record))
    assert ("Traceback" in line.get("error", "")) is traced
    assert ("what the server said" in line["text"]) is not traced
