"""Settling: the deadline of a burst is fixed by its first event and inherited by later ones (docs/protocol.md#settle).

Joins the admitted transaction. One bounded statement per 256 requested sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from projection.database.catalogue import chunks
from projection.database.clock import from_db, to_db
from projection.facts import InboundEvent
from projection.identity import source_key
from projection.models import Event

KEYS_A_STATEMENT: Final = 256

Burst = tuple[int, int, str]
"""(pack id, route id, source key): what shares one deadline. The route's row fixes the companion."""


def burst_of(event: InboundEvent) -> Burst | None:
    """The burst that an event belongs to; None when it does not settle."""
    if not event.is_projected or event.route is None or event.route.settle_seconds <= 0:
        return None
    return event.pack_id, event.route.id, source_key(event.source_type, event.source_id)


def deadlines(events: Iterable[InboundEvent], now: datetime) -> dict[Burst, datetime]:
    """The deadline of each burst that the fresh `events` are part of: the open one's, else `now` plus the route's settling time."""
    fresh: dict[Burst, datetime] = {}
    for event in events:
        burst = burst_of(event)
        if burst is not None and burst not in fresh and event.route is not None:
            fresh[burst] = now + event.route.settle
    for chunk in chunks(fresh, KEYS_A_STATEMENT):
        scopes: dict[tuple[int, int], list[str]] = {}
        for pack_id, route_id, key in chunk:
            scopes.setdefault((pack_id, route_id), []).append(key)
        for found, deadline in Event.objects.read_settle_deadlines(scopes, to_db(now)).items():
            if found in fresh:  # exact membership: a widened column may return a key that only looks equal
                fresh[found] = from_db(deadline)
    return fresh
