"""Times at the edge to the database: naive UTC there, aware UTC everywhere else. The database's clock is the only clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from threading import local
from time import monotonic
from typing import Any, Final, overload

from django.db import connection

LATELY_SECONDS: Final = 60.0
"""A server's clock may be set, and another server may follow: what it said is believed for no longer."""
_told: Final = local()


@overload
def from_db(value: None) -> None: ...
@overload
def from_db(value: datetime) -> datetime: ...
def from_db(value: datetime | None) -> datetime | None:
    """A DATETIME as the driver returns it, made aware."""
    return None if value is None else value.replace(tzinfo=UTC)


def aware(row: Iterable[Any]) -> list[Any]:
    """The values of a row as the driver returns it, its times made aware."""
    return [from_db(value) if isinstance(value, datetime) else value for value in row]


@overload
def to_db(value: None) -> None: ...
@overload
def to_db(value: datetime) -> datetime: ...
def to_db(value: datetime | None) -> datetime | None:
    """An aware time as a DATETIME parameter. Raises ValueError for a naive one: nobody knows its zone."""
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError("a time without a time zone cannot be stored; add one")
    return value.astimezone(UTC).replace(tzinfo=None)


def now() -> datetime:
    """The database's time, aware UTC with microseconds; fixed within one statement. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT UTC_TIMESTAMP(6)")
        value: datetime = cursor.fetchone()[0]
    told = from_db(value)
    _told.at = told, monotonic()
    return told


def lately() -> datetime:
    """What `now` last told this thread and the time that passed since: for what a page shows of many rows. Asks again after a minute."""
    at: tuple[datetime, float] | None = getattr(_told, "at", None)
    passed = monotonic() - at[1] if at else 0.0
    return now() if at is None or passed > LATELY_SECONDS else at[0] + timedelta(seconds=passed)
