"""Slices of a JSON text are exact: put together again they are the text, parsed they are its values."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection import exact_json
from projection.exact_json import ExactNumber, NotJson

SPACE = st.text(" \t\r\n", max_size=3)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})\.[0-9]{1,20}", fullmatch=True),
    st.from_regex(r"-?(0|[1-9][0-9]{0,5})[eE][+-]?[0-9]{1,3}", fullmatch=True),
)
TEXTS = st.one_of(
    st.text().map(json.dumps),
    st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: json.dumps(text, ensure_ascii=False)),
)
VALUES = st.recursive(
    st.one_of(st.sampled_from(["null", "true", "false"]), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(st.tuples(SPACE, inner, SPACE), max_size=4).map(lambda parts: "[" + ",".join(map("".join, parts)) + "]"),
        st.lists(st.tuples(SPACE, TEXTS, SPACE, SPACE, inner, SPACE), max_size=4).map(
            lambda parts: "{" + ",".join(f"{a}{name}{b}:{c}{value}{d}" for a, name, b, c, value, d in parts) + "}"
        ),
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(SPACE, VALUES, SPACE), max_size=6))
def test_elements_are_the_slices_that_were_sent(parts: list[tuple[str, str, str]]) -> None:
    text = "[" + ",".join(map("".join, parts)) + "]"
    found = list(exact_json.elements(text))
    assert [slice_ for slice_, _ in found] == [value for _, value, _ in parts]
    assert [value for _, value in found] == exact_json.parse(text)


@given(VALUES)
def test_a_value_parses_as_the_standard_reader_does(text: str) -> None:
    assert exact_json.parse(text) == json.loads(text, parse_float=Decimal)


@given(VALUES)
def test_dump_gives_back_an_equal_text_with_the_same_numbers(text: str) -> None:
    again = exact_json.dump(exact_json.parse(text))
    assert exact_json.parse(again) == exact_json.parse(text)
    assert exact_json.dump(exact_json.parse(again)) == again


@given(VALUES, st.text(), SPACE)
def test_member_at_finds_the_last_of_equal_names(value: str, name: str, space: str) -> None:
    quoted = json.dumps(name)
    text = f"{{{quoted}:1,{space}{quoted}{space}:{space}{value}{space}}}"
    at = exact_json.member_at(text, name)
    assert at is not None
    assert text[at : exact_json.end_of(text, at)] == value


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text_parses_or_is_refused_as_not_json(text: str) -> None:
    try:
        exact_json.parse(text)
    except NotJson:
        with pytest.raises((ValueError, RecursionError)):
            _strictly(text)


def _strictly(text: str) -> Any:
    """The standard reader without the constants that it adds to JSON and without white space of other standards."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse, parse_float=Decimal)


@pytest.mark.parametrize(
    "text", ["NaN", '{"a":NaN}', '{"a":-Infinity}', "[Infinity]", "01", "'a'", "[1,]", '{"a":1,}', "", " ", "\xa01"]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        exact_json.parse(text)


def test_numbers_out_of_every_range_and_deep_nesting_are_refused_not_fatal() -> None:
    for text in ("1e99999999999999999999", "[" * 200_000):
        with pytest.raises(NotJson):
            exact_json.parse(text)


def test_1e400_stays_what_it_is() -> None:
    value = exact_json.parse('{"a":1e400}')
    assert exact_json.dump(value) == '{"a":1e400}'
    assert value["a"].is_finite()


@pytest.mark.parametrize("literal", ["1E2", "10.10", "12345678901234567.89", "-0.0", "1e+5"])
def test_a_number_is_written_as_it_was_received(literal: str) -> None:
    value = exact_json.parse(literal)
    assert isinstance(value, ExactNumber)
    assert (str(value), f"{value}", exact_json.dump(value)) == (literal,) * 3
    assert value == Decimal(literal)


def test_value_at_walks_members_and_elements() -> None:
    text = '{"a": [ {"b": 1}, {"b": [7 , 8]} ]}'
    at = exact_json.value_at(text, ("a", 1, "b", 0))
    assert at is not None
    assert text[at] == "7"
    assert exact_json.value_at(text, ("a", 2)) is None
    assert exact_json.value_at(text, ("x", "y")) is None


def test_a_huge_integer_keeps_its_digits_and_its_siblings() -> None:
    huge = "9" * 5000
    (first, second) = exact_json.elements(f'[{{"id":{huge}}},{{"id":7}}]')
    assert str(first[1]["id"]) == huge
    assert first[0] == f'{{"id":{huge}}}'
    assert second == ('{"id":7}', {"id": 7})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":1}', "expected a JSON array"),
        ("", "expected a JSON array"),
        ("[1 2]", "expected ',' or ']' at character 3"),
        ("[1", "expected ',' or ']' at character 2"),
        ("[1,", "not JSON"),
    ],
)
def test_a_broken_array_says_where(text: str, says: str) -> None:
    with pytest.raises(NotJson, match=re.escape(says)):
        list(exact_json.elements(text))


def test_what_stands_before_the_fault_of_an_array_is_given_first() -> None:
    found = exact_json.elements("[1.10, 2 3]")
    assert [next(found)[0], next(found)[0]] == ["1.10", "2"]
    with pytest.raises(NotJson):
        next(found)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('["a"]', "expected a JSON object"),
        ("{a:1}", "expected a member name at character 1"),
        ('{"a\\x":1}', "not JSON: Invalid \\escape"),
        ('{"a" 1}', "expected ':' at character 5"),
        ('{"a":1 "b":2}', "expected ',' or '}' at character 7"),
        ('{"a":1,}', "expected a member name at character 7"),
        ('{"a":', "not JSON"),
    ],
)
def test_a_broken_object_says_where(text: str, says: str) -> None:
    with pytest.raises(NotJson, match=re.escape(says)):
        exact_json.member_at(text, "b")


@pytest.mark.parametrize(
    ("text", "path"), [("{}", ("a",)), ('{"b":1}', ("a",)), ("[]", (0,)), ("[1]", (1,)), ('{"a":[]}', ("a", 3))]
)
def test_what_is_absent_is_none(text: str, path: tuple[str | int, ...]) -> None:
    assert exact_json.value_at(text, path) is None


def test_a_path_that_does_not_fit_is_refused() -> None:
    with pytest.raises(NotJson, match="expected a JSON array"):
        exact_json.value_at('{"a":{}}', ("a", 0))
    with pytest.raises(NotJson, match="expected a JSON object"):
        exact_json.value_at("[1]", ("a",))


@pytest.mark.parametrize("wrap", [("[", "]"), ('{"a":', "}"), ('[{"]":[', "]}]")])
@pytest.mark.parametrize("times", [1, 66, 100, 199, 200, 201, 5_000])
def test_one_limit_of_depth_on_every_interpreter(wrap: tuple[str, str], times: int) -> None:
    text = wrap[0] * times + '"[[{"' + wrap[1] * times
    levels = times * (wrap[0].count("[") + wrap[0].count("{"))
    assert exact_json.is_too_deep(text) == (levels > exact_json.MOST_DEPTH)
    flat = "[" + ",".join(["[]"] * 10_000) + "]"
    assert not exact_json.is_too_deep(flat)


def test_a_deep_element_is_passed_over() -> None:
    deep = "[" * 20_000 + '"]"' + "]" * 20_000
    assert [slice_ for slice_, _ in exact_json.elements(f'[1, {deep} , "x"]')] == ["1", deep, '"x"']
    text = f'{{"a":{deep},"b":[2]}}'
    assert exact_json.value_at(text, ("b",)) == text.index("[2]")
    with pytest.raises(NotJson, match="no end"):
        list(exact_json.elements("[" * 20_000))
