"""Settling: the deadline of a burst is fixed by its first event and inherited by later ones (docs/protocol.md#settle).

A burst is of one projection: what settles together is what one generation will hold. Joins the admitted transaction. One bounded
statement per 256 requested projections.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from projection.admission.rows import key_of
from projection.database.catalogue import chunks
from projection.database.clock import from_db, to_db
from projection.facts import InboundEvent
from projection.models import Event

KEYS_A_STATEMENT: Final = 256


def deadlines(events: Iterable[InboundEvent], now: datetime) -> dict[str, datetime]:
    """Projection key → deadline of its burst, of those that the fresh `events` belong to: the open one's, else `now` plus the route's
    settling time. What does not settle has none.
    """
    fresh: dict[str, datetime] = {}
    for event in events:
        if event.route is None or event.route.settle_seconds <= 0:
            continue
        key = key_of(event)
        if key is not None and key not in fresh:
            fresh[key] = now + event.route.settle
    for chunk in chunks(fresh, KEYS_A_STATEMENT):
        for found, deadline in Event.objects.read_settle_deadlines(chunk, to_db(now)).items():
            if found in fresh:  # exact membership: a widened column may return a key that only looks equal
                fresh[found] = from_db(deadline)
    return fresh
