"""A comparison of two texts: exact, stable where nothing differs, bounded whatever is compared."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_ui.console.payloads import diff as payload_diff
from ops_ui.console.payloads.diff import GONE, LEFT_OUT, NEW, SAME, Row, compare, lines_of
from ops_ui.console.payloads.reads import Text

LINES = st.lists(st.sampled_from("abc"), max_size=30)


@given(LINES, LINES)
def test_the_rows_hold_each_side_in_order(old: list[str], new: list[str]) -> None:
    found = compare(old, new)
    places = {side: [getattr(row, side) for row in found.rows if getattr(row, side)] for side in ("old", "new")}
    left_out = sum(row.left_out for row in found.rows)
    for side, lines in (("old", old), ("new", new)):
        assert places[side] == sorted(places[side])
        assert len(places[side]) + left_out == len(lines)
    for row in found.rows:
        assert row.old is None or old[row.old - 1] == row.text
        assert row.new is None or new[row.new - 1] == row.text
    assert (found.gone or found.new) == 0 or old != new
    assert old == new or found.gone or found.new


def test_a_new_member_changes_no_other_line() -> None:
    found = compare(lines_of(Text('{"a":1.0}')), lines_of(Text('{ "a":1.0, "b":[]}')))
    assert found.rows == [
        Row(SAME, "{", 1, 1),
        Row(SAME, '  "a":1.0', 2, 2),
        Row(NEW, '  "b":[]', new=3),
        Row(SAME, "}", 3, 4),
    ]


def test_numbers_are_compared_as_they_were_sent() -> None:
    found = compare(lines_of(Text("[1.0]")), lines_of(Text("[1.00]")))
    assert [(row.kind, row.text.strip()) for row in found.rows if row.kind != SAME] == [(GONE, "1.0"), (NEW, "1.00")]


def test_a_string_that_ends_with_a_comma_keeps_it() -> None:
    assert lines_of(Text('["a,",","]')) == ["[", '  "a,"', '  ","', "]"]


def test_other_text_is_compared_by_its_own_lines() -> None:
    assert lines_of(Text("a,\n b,")) == ["a,", " b,"]


def test_equal_lines_far_from_a_difference_are_left_out() -> None:
    lines = [str(number) for number in range(20)]
    found = compare(lines, [*lines[:10], "x", *lines[11:]])
    assert [row.kind for row in found.rows] == [LEFT_OUT, *[SAME] * 3, GONE, NEW, *[SAME] * 3, LEFT_OUT]
    assert [row.left_out for row in found.rows if row.kind == LEFT_OUT] == [7, 6]
    assert compare(lines, lines).rows == [Row(LEFT_OUT, left_out=20)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("alphabet", [1, 2, 60, 10_000])
def test_a_comparison_is_bounded(alphabet: int) -> None:
    chance = random.Random(1)
    sides = [[str(chance.randrange(alphabet)) for _ in range(50_000)] for _ in range(2)]
    found = compare(*sides)
    assert found.is_cut
    assert len(found.rows) <= 2 * payload_diff.LINES
