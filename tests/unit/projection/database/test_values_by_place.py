"""A statement whose values go by place sends the same text as by name."""

from __future__ import annotations

from projection.database.catalogue import by_place


def test_values_go_where_their_names_stood() -> None:
    text, values_of = by_place("INSERT INTO t (a, b, c) VALUES (%(b)s, COALESCE(%(a)s, UTC_TIMESTAMP(6)), %(b)s)")
    assert text == "INSERT INTO t (a, b, c) VALUES (%s, COALESCE(%s, UTC_TIMESTAMP(6)), %s)"
    assert values_of({"a": 1, "b": None, "unused": 3}) == (None, 1, None)
