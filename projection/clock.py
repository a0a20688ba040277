"""Times at the edge to the database: naive UTC there, aware UTC everywhere else. The database's clock is the only clock."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, overload

from django.db import connection


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
        raise ValueError("a time without zone cannot be stored")
    return value.astimezone(UTC).replace(tzinfo=None)


def now() -> datetime:
    """The database's time, aware UTC with microseconds; fixed within one statement. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT UTC_TIMESTAMP(6)")
        value: datetime = cursor.fetchone()[0]
    return from_db(value)
