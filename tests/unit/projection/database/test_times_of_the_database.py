"""Times at the edge to the database: naive UTC there, aware UTC here, to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from projection.database.clock import from_db, to_db

MOMENT = datetime(2026, 5, 5, 5, 5, 5, 250123, tzinfo=UTC)


def test_a_time_goes_and_comes_back_as_it_was() -> None:
    stored = to_db(MOMENT)
    assert (stored.tzinfo, from_db(stored)) == (None, MOMENT)
    assert (to_db(None), from_db(None)) == (None, None)


def test_a_time_of_another_zone_is_stored_as_utc() -> None:
    assert to_db(MOMENT.astimezone(timezone(timedelta(hours=9)))) == to_db(MOMENT)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a time zone"):
        to_db(MOMENT.replace(tzinfo=None))
