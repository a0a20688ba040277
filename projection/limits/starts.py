"""May a claimed attempt start in this process now? Its limit says so, and what of its destination runs here. Executors only ask."""

from __future__ import annotations

from time import monotonic
from typing import Final

from projection.limits import rate_limits, route_limits
from projection.limits.destinations import AT_ONCE

A_DESTINATION: Final = AT_ONCE
"""Attempts of one destination at once. Also so many unstarted ones are enough of it: no more is claimed while others have room."""


def limit_allows(route_id: int, starts_at: float) -> bool:
    """Whether its rate limit lets an attempt begin now that waited for its moment, `starts_at` (monotonic; 0: it had none).

    One that is late needs another slot, if there is one. No statement but for such a one. Raises the database's error.
    """
    terms = route_limits.find(route_id) if starts_at else None
    if terms is None or terms.limit_key is None or monotonic() - starts_at <= rate_limits.LATE_SECONDS + terms.spacing:
        return True
    return rate_limits.again(terms.limit_key)


def destination_allows(running: int, *, is_in_doubt: bool) -> bool:
    """Whether one more attempt of a destination may begin beside those that run. In doubt: an outage of it is not written yet."""
    return running < A_DESTINATION and not is_in_doubt
