"""Laying out changes nothing but white space between tokens, whatever the JSON."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_ui.console.payloads.json_lines import Lines, as_sent, laid_out
from projection.masking import mask

WHITE = set(" \t\n\r")
SCALARS = st.sampled_from(["null", "true", "1.0", "12345678901234567890", "1E400", "-0", "1e-7"]) | st.text().map(json.dumps)
SPACES = st.text(" \t\n\r", max_size=3)


def _array(parts: list[str]) -> str:
    return f"[{','.join(parts)}]"


def _object(members: list[tuple[str, str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}{space}:{value}" for name, space, value in members) + "}"


def padded(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(SPACES, inner, SPACES).map("".join)


JSON = padded(
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(padded(inner)).map(_array)
            | st.lists(st.tuples(st.text(max_size=4), SPACES, padded(inner))).map(_object)
            | SPACES.map(lambda spaces: f"[{spaces}]")
        ),
        max_leaves=30,
    )
)
"""JSON as text, as no writer of ours would write it: with any white space, any digits and names that occur twice."""


def shown(text: str, lines: Lines) -> list[str]:
    return ["  " * depth + text[start:end] for start, end, depth in zip(lines.starts, lines.ends, lines.depths, strict=True)]


def gaps(text: str, lines: Lines) -> list[str]:
    """What stands in no line: before the first, between two and after the last."""
    ends = [(0, 0), *zip(lines.starts, lines.ends, strict=True), (len(text), len(text))]
    return [text[before[1] : after[0]] for before, after in pairwise(ends)]


@given(JSON)
def test_between_the_lines_there_is_white_space_only(text: str) -> None:
    assert set("".join(gaps(text, laid_out(text)))) <= WHITE


@given(JSON)
def test_what_is_laid_out_reads_as_the_same_tokens(text: str) -> None:
    def pairs(found: str) -> object:
        return json.loads(found, object_pairs_hook=tuple, parse_float=str, parse_int=str)

    assert pairs("\n".join(shown(text, laid_out(text)))) == pairs(text)


@given(JSON)
def test_each_fold_ends_at_the_bracket_that_closes_it(text: str) -> None:
    lines = laid_out(text)
    rows = [text[start:end] for start, end in zip(lines.starts, lines.ends, strict=True)]
    for first, last in lines.folds.items():
        assert rows[last][0] == {"{": "}", "[": "]"}[rows[first][-1]]
        assert lines.depths[first] == lines.depths[last]
        assert all(depth > lines.depths[first] for depth in lines.depths[first + 1 : last])
    assert len(lines.folds) == sum(row.endswith(("{", "[")) for row in rows)


@given(st.text())
def test_any_text_keeps_each_character(text: str) -> None:
    for lines in (laid_out(text), as_sent(text)):
        assert set("".join(gaps(text, lines))) <= WHITE
    assert "\n".join(shown(text, as_sent(text))) == text


def test_objects_and_arrays_are_indented_and_empty_ones_stay_whole() -> None:
    text = '{"a":1.0,"a":[ ],"b":{"c":[12345678901234567890,"},"]}}'
    assert shown(text, laid_out(text)) == [
        "{",
        '  "a":1.0,',
        '  "a":[ ],',
        '  "b":{',
        '    "c":[',
        "      12345678901234567890,",
        '      "},"',
        "    ]",
        "  }",
        "}",
    ]


def test_masked_values_are_laid_out_too() -> None:
    text = mask('{"email":{"of":"ada"},"n":1}', ["$.email"])
    assert shown(text, laid_out(text)) == ["{", '  "email":•••,', '  "n":1', "}"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ['"' + '\\"' * 500_000, '"' * 500_001, "[" * 300_000, '{"a":' * 100_000, "\\" * 500_000])
def test_hostile_text_takes_linear_time(text: str) -> None:
    assert "".join(gaps(text, laid_out(text))) == ""
