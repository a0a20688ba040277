"""Deadlines, as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connectors.durations import deadline

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2h", NOON + timedelta(hours=2)),
        ("0s", NOON),
        ("2026-11-30T08:00:00Z", datetime(2026, 11, 30, 8, tzinfo=UTC)),
        ("2026-11-30T08:00+02:00", datetime(2026, 11, 30, 6, tzinfo=UTC)),
        ("2020-01-01T00:00Z", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_duration_or_a_time_with_its_zone(text: str, at: datetime) -> None:
    assert deadline(text, NOON) == at


@pytest.mark.parametrize("text", ["", "soon", "-2h", "2026-13-01T00:00Z", "367d", "0001-01-01T00:00+23:00", "é"])
def test_anything_else_is_told_how_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match="write a duration such as 2h, or a time such as"):
        deadline(text, NOON)


def test_a_time_without_zone_is_told_apart() -> None:
    with pytest.raises(ValueError, match=r"the time zone is missing; write e\.g\. 2026-11-30T08:00Z"):
        deadline("2026-11-30T08:00", NOON)
