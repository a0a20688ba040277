"""Times of the driver: read by another way than mysqlclient's, and always the same as its."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.db.backends.mysql.base import django_conversions
from MySQLdb.constants import FIELD_TYPE
from MySQLdb.times import DateTime_or_None

from ops_ui.config.database_url import CONVERSIONS, datetime_of


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30 04:57:30.123456",
        "2026-11-30 04:57:30.000001",
        "2026-11-30 04:57:30.120",
        "2026-11-30 04:57:30.5",
        "2026-11-30 04:57:30",
        "9999-12-31 23:59:59.999999",
        "0001-01-01 00:00:00",
        "0000-00-00 00:00:00",
        "0000-00-00 00:00:00.000000",
        "2026-00-30 04:57:30",
        "",
    ],
)
def test_a_time_is_what_the_driver_makes_of_it(text: str) -> None:
    assert datetime_of(text) == DateTime_or_None(text)


def test_microseconds_are_exact_and_no_zone_is_guessed() -> None:
    assert datetime_of("2026-11-30 04:57:30.123456") == datetime(2026, 11, 30, 4, 57, 30, 123456)


def test_everything_else_is_as_in_djangos_backend() -> None:
    ours: dict[Any, Any] = dict(CONVERSIONS)
    for kind in (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP):
        assert ours.pop(kind) is datetime_of
    assert ours == {
        key: value for key, value in django_conversions.items() if key not in (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)
    }
