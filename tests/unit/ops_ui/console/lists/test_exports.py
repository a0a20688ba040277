"""Cells of an export: exact, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ops_ui.console.lists.exports import Columns, _csv, _json_lines, cell

BIG = 9007199254740993


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=1", "＝1+1", '=HYPERLINK("http://x","y")', "-2+3+cmd|' /C calc'!A0"]
)
def test_text_that_begins_like_a_formula_is_made_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (BIG, "9007199254740993"),
        (-5, "-5"),
        (18446744073709551615, "18446744073709551615"),
        (0.1, "0.1"),
        (True, "true"),
        (timedelta(seconds=90), "90.0"),
        ("contact:42", "contact:42"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_other_values_are_written_exactly(value: Any, text: str) -> None:
    assert cell(value) == text


def test_times_are_utc_with_microseconds() -> None:
    at = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    assert cell(at) == "2026-05-01T10:00:00.123456Z"


def test_a_file_is_read_back_as_it_was() -> None:
    values = ["a,b", 'say "hi"', "two\nlines", "ünïcode", "\u202egnp", "x" * 40_000]
    rows = Columns([[value, BIG, datetime(2026, 1, 1, tzinfo=UTC)] for value in values], {})
    columns = Columns(rows.rows, {"text": lambda row: row[0], "n": lambda row: row[1], "at": lambda row: row[2]})
    read = list(csv.reader(io.StringIO(_csv(columns, True).decode(), newline="")))
    assert read[0] == ["text", "n", "at"]
    assert [row[0] for row in read[1:]] == values
    assert {row[1] for row in read[1:]} == {str(BIG)}
    lines = [json.loads(line) for line in _json_lines(columns, True).decode().split("\n")[:-1]]
    assert [line["text"] for line in lines] == values
    assert lines[0] == {"text": "a,b", "n": BIG, "at": "2026-01-01T00:00:00.000000Z"}
    assert not _csv(columns, False).startswith(b'"text')


def test_a_value_is_one_cell_whatever_separates_cells() -> None:
    """Spreadsheets of many countries separate by `;`, and would run what stands behind one."""
    columns = Columns([["x;=cmd|' /C calc'!A0", "y"]], {"text": lambda row: row[0], "more": lambda row: row[1]})
    assert _csv(columns, False).decode() == '"x;=cmd|\' /C calc\'!A0","y"\r\n'
