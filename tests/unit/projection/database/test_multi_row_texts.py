"""Multi-row INSERT texts: each row whole, no text longer than asked, each value as the driver would write it."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import pytest

from projection.database.bulk_insert import multi_row_texts

STATEMENT = "INSERT INTO t (a, b)\nVALUES\n  (%s, %s)"


class Driver:
    """Notes which values were made literals."""

    def __init__(self) -> None:
        self.asked: Counter[Any] = Counter()

    def literal(self, value: Any) -> bytes:
        self.asked[value] += 1
        return repr(value).encode()


def texts(rows: list[tuple[Any, ...]], longest: int = 10_000, statement: str = STATEMENT) -> list[str]:
    return list(multi_row_texts(statement, rows, Driver().literal, longest))


def test_all_rows_stand_in_one_text_in_their_order() -> None:
    assert texts([(1, "x"), (2, None)]) == ["INSERT INTO t (a, b)\nVALUES\n  (1,'x'),(2,NULL)"]


def test_what_follows_the_values_stands_once_at_the_end_of_each_text() -> None:
    statement = STATEMENT + "\nON DUPLICATE KEY UPDATE a = VALUES(a)"
    assert texts([(1, "x"), (2, "y")], 80, statement) == [
        "INSERT INTO t (a, b)\nVALUES\n  (1,'x')\nON DUPLICATE KEY UPDATE a = VALUES(a)",
        "INSERT INTO t (a, b)\nVALUES\n  (2,'y')\nON DUPLICATE KEY UPDATE a = VALUES(a)",
    ]


@pytest.mark.parametrize("longest", [60, 61, 75, 200])
def test_no_text_is_longer_than_asked_and_no_row_is_lost(longest: int) -> None:
    rows = [(number, "x" * (number % 7)) for number in range(50)]
    found = texts(rows, longest)
    assert max(len(text) for text in found) <= longest
    assert "".join(text.partition("VALUES\n  ")[2] + "," for text in found) == "".join(f"({a},{b!r})," for a, b in rows)


def test_a_row_that_is_longer_than_a_text_may_be_goes_alone() -> None:
    found = texts([(1, "x"), (2, "y" * 500), (3, "z")], 100)
    assert [text.count("(") - 1 for text in found] == [1, 1, 1]


def test_no_rows_make_no_text() -> None:
    assert texts([]) == []


def test_an_equal_text_or_time_is_made_a_literal_once() -> None:
    driver, noon = Driver(), datetime.datetime(2026, 1, 1, 12)
    list(multi_row_texts(STATEMENT, [("same", noon)] * 40, driver.literal, 10_000))
    assert driver.asked == {"same": 1, noon: 1}


def test_values_that_python_takes_for_equal_stay_apart() -> None:
    found = texts([(1, True), (1.0, 0), (False, "1"), (b"1", "é"), (0, "e")])
    assert found[0].endswith("(1,True),(1.0,0),(False,'1'),(b'1','é'),(0,'e')")


def test_a_percent_sign_in_a_value_is_no_placeholder() -> None:
    assert texts([("100 %s", "%(x)s")])[0].endswith("('100 %s','%(x)s')")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a = %s",
        "INSERT INTO t VALUES (%s, 1)",
        STATEMENT + " ON DUPLICATE KEY UPDATE a = %s",
        "INSERT INTO t SELECT %s",
    ],
)
def test_a_statement_that_cannot_be_repeated_is_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="no multi-row statement"):
        texts([(1, 2)], statement=statement)
