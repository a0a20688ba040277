"""Values leave as they came: digits as sent, nothing through a float, nothing that is not JSON."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection.exact_json import ExactNumber, NoExactJson, NotJson, dump, parse


@pytest.mark.parametrize(
    "text",
    [
        "10.10",
        "1E2",
        "1e+2",
        "-0.0",
        "12345678901234567.89",
        "18446744073709551616",
        "7615917337495251231",
        "9007199254740993",
        "1e400",
        "0.1e-7",
        '{"a":[1.0,{"b":1.00}],"c":null,"d":true,"e":false}',
        '"é👍"',
        r'"\ud83d"',
    ],
)
def test_what_was_parsed_is_written_as_it_was_sent(text: str) -> None:
    assert dump(parse(text)) == text


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_every_value_survives_the_way_out_and_in(value: Any) -> None:
    text = dump(value)
    text.encode("utf-8")
    assert parse(text) == value
    json.loads(text)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 0.1, Decimal("NaN"), Decimal("-Infinity"), Decimal("sNaN"), {"a": [float("inf")]}],
)
def test_a_number_that_is_not_exact_or_not_json_is_refused(value: Any) -> None:
    with pytest.raises(NoExactJson, match=r"not exact|not JSON"):
        dump(value)


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), b"x", {1: 2}, {"a": {1, 2}}, object()])
def test_anything_else_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(NoExactJson, match=r"cannot be written as JSON|member name is text"):
        dump(value)


def test_endless_nesting_is_refused_not_a_crash() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NoExactJson, match="nested"):
        dump(loop)


@pytest.mark.parametrize("text", ["1e99999999999999999999999", "[1E-99999999999999999999]"])
def test_an_exponent_out_of_range_is_unreadable_not_a_crash(text: str) -> None:
    with pytest.raises(NotJson, match="is too large"):
        parse(text)


def test_a_parsed_number_is_a_decimal_that_keeps_its_digits() -> None:
    number = parse("10.10")
    assert isinstance(number, Decimal)
    assert number + 1 == Decimal("11.10")
    for twin in (copy.copy(number), copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert isinstance(twin, ExactNumber)
        assert (twin, twin.literal) == (number, "10.10")


def test_an_integer_with_more_digits_than_the_interpreter_writes_is_refused() -> None:
    with pytest.raises(NoExactJson, match="the integer cannot be written as JSON"):
        dump({"a": 10**5000})


@pytest.mark.parametrize(
    "text", ["-0", "[-0]", '{"n":-0}', '{"n": -0,"m":[1,-0 ]}', '{"a":"x, -0","n":0}', "-0.0", "-0e1", "[-1,0]"]
)
def test_a_minus_before_zero_is_kept(text: str) -> None:
    assert dump(parse(text)) == text.replace(": ", ":").replace("-0 ]", "-0]")
    assert parse("-0") == 0


def test_an_integer_zero_stays_an_integer() -> None:
    assert type(parse("0")) is int
    assert type(parse('{"at":"2026-01-05, -0"}')["at"]) is str
