"""JMESPath expressions of a pack's settings over exact numbers."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.expressions import Expression
from connectors.pack import Headers, Unreadable
from projection import exact_json

ITEM = """{"amount": 10.1, "whole": 3, "id": 12345678901234567890, "long": 0.1234567890123456789, "big": 1e999999999,
  "lines": [{"n": "a", "price": 10.10}, {"n": "b", "price": 9}, {"n": "c", "price": 0.30}], "prices": [10.10, 9, 0.30],
  "ids": [1.5, "x"], "flag": true, "text": "10.10"}"""


def found(expression: str) -> Any:
    return Expression.of("kind", expression).find(exact_json.parse(ITEM), Headers({}))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("amount == `10.1`", "true"),
        ("amount == `10.10`", "true"),
        ("`10.1` == amount", "true"),
        ("amount != `10.1`", "false"),
        ("amount > `10.09` && amount < `10.11`", "true"),
        ("long == `0.1234567890123456789`", "true"),
        ("long == `0.1234567890123456780`", "false"),
        ("whole == `3.0`", "true"),
        ("lines[?price == `10.1`].n | [0]", '"a"'),
        ("lines[?price >= `9`].n", '["a","b"]'),
        ("contains(prices, `0.3`)", "true"),
        ("prices == [`10.1`, `9`, `0.3`]", "true"),
        ("sum(prices)", "19.40"),
        ("sum(lines[].price)", "19.40"),
        ("sum(`[]`)", "0"),
        ("sum([whole, whole])", "6"),
        ("avg(prices)", "6.466666666666666666666666667"),
        ("avg([whole, whole])", "3"),
        ("max_by(lines, &price).n", '"a"'),
        ("min_by(lines, &price).n", '"c"'),
        ("sort_by(lines, &price)[].n", '["c","b","a"]'),
        ("sort(prices)", "[0.30,9,10.10]"),
        ("max(prices)", "10.10"),
        ("min(prices)", "0.30"),
        ("floor(amount)", "10"),
        ("ceil(amount)", "11"),
        ("floor(`-10.1`)", "-11"),
        ("ceil(whole)", "3"),
        ("abs(`-10.10`)", "10.10"),
        ("type(amount)", '"number"'),
        ("type(flag)", '"boolean"'),
        ("to_number(text)", "10.10"),
        ("to_number(amount)", "10.1"),
        ("to_number(id)", "12345678901234567890"),
        ("to_number(flag)", "null"),
        ("to_number('1_000')", "null"),
        ("to_number('NaN')", "null"),
        ("to_string(lines[0].price)", '"10.10"'),
        ("big > `5.5`", "true"),
        ('`"a\\`b"`', '"a`b"'),
        ("`1.5` | to_string(@)", '"1.5"'),
    ],
)
def test_numbers_with_a_fraction_are_numbers(expression: str, value: str) -> None:
    assert exact_json.dump(found(expression)) == value


@pytest.mark.parametrize("expression", ["floor(big)", "ceil(big)"])
def test_a_huge_number_never_fills_the_memory(expression: str) -> None:
    assert found(expression).adjusted() == 999_999_999


@pytest.mark.parametrize("expression", ["sum(ids)", "floor(text)", "max_by(lines, &flag)", "sum([big, whole])"])
def test_what_does_not_fit_is_unreadable_by_its_setting(expression: str) -> None:
    with pytest.raises(Unreadable, match="cannot be applied to this item"):
        found(expression)


@pytest.mark.parametrize("expression", ["amount == `10.1", "a b", "amount =", "foo("])
def test_what_is_no_expression_names_its_setting(expression: str) -> None:
    with pytest.raises(ValueError, match="kind is not a JMESPath expression: "):
        Expression.of("kind", expression)
