"""Times to come as people write them: how long from now, or a time with its zone."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from connectors import durations


def ahead(text: str, now: datetime) -> datetime:
    """`2h` from `now`, or an ISO time with its zone, aware UTC; it may be over. Raises ValueError with a sentence."""
    with suppress(ValueError):  # no duration: then it is a time
        return now + timedelta(seconds=durations.seconds(text))
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("write a duration such as 2h, or a time such as 2026-11-30T08:00:00Z") from None
    raise ValueError(f"a time needs its zone, e.g. {text}Z")
