"""Provider time is a hint: read where it can be, else absent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from connectors.identity_texts import identity_text, provider_time
from connectors.pack import Unreadable
from projection.exact_json import parse


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1700000000, "2023-11-14 22:13:20+00:00"),
        ("1700000000", "2023-11-14 22:13:20+00:00"),
        (1700000000123, "2023-11-14 22:13:20.123000+00:00"),
        (1700000000123456, "2023-11-14 22:13:20.123456+00:00"),
        (Decimal("1700000000.5"), "2023-11-14 22:13:20.500000+00:00"),
        ("2023-11-14T22:13:20Z", "2023-11-14 22:13:20+00:00"),
        ("2023-11-14T23:13:20+01:00", "2023-11-14 22:13:20+00:00"),
        ("2023-11-14T22:13:20", "2023-11-14 22:13:20+00:00"),
        ("2023-11-14T22:13:20.123456789Z", "2023-11-14 22:13:20.123456+00:00"),
    ],
)
def test_forms_of_time(value: Any, expected: str) -> None:
    assert str(provider_time(value)) == expected


@pytest.mark.parametrize("value", [None, "", "soon", True, -1, 10**30, "9" * 40, [], {}, "9999-99-99", "0001-01-01", "1e3"])
def test_what_is_no_time_is_none(value: Any) -> None:
    assert provider_time(value) is None


def test_exact_numbers_and_texts_as_ids() -> None:
    assert [identity_text(one) for one in (1, "x", " ", None, "true", parse("1.10"))] == ["1", "x", None, None, "true", "1.10"]
    for value in (1.5, [], {}, True, False):
        with pytest.raises(Unreadable):
            identity_text(value)
