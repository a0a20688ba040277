"""How the driver's texts become values: mysqlclient's own ways, but for times, which it takes apart in Python.

A claimed item has nine times; reading them was a tenth of the worker's CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.db.backends.utils import typecast_time
from MySQLdb.constants import FIELD_TYPE
from MySQLdb.converters import conversions
from MySQLdb.times import DateTime_or_None


def datetime_of(text: str) -> datetime | None:
    """A DATETIME as the server writes it, naive. None for what is no time, such as a date of zeros."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        value: datetime | None = DateTime_or_None(text)
        return value


CONVERSIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    **conversions,
    FIELD_TYPE.TIME: typecast_time,  # as in Django's backend, whose list this replaces
    FIELD_TYPE.DATETIME: datetime_of,
    FIELD_TYPE.TIMESTAMP: datetime_of,
}
"""The driver's `conv` option."""
