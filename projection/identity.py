"""Keys that decide identity: SHA-256 over length-prefixed parts, never a database collation.

Text equality in a database depends on collation (case, accents, emoji weight, trailing spaces); equality of these keys does not.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from projection.facts import RouteFacts, Source, SourceLane

PROJECTION_PREFIX: Final = "csp:"
PER_EVENT_PREFIX: Final = "evt:"
_REMEMBERED: Final = 8192
"""Keys of sources and lanes are asked for again and again within one admission; the busiest stay at hand."""


def digest(*parts: str | int) -> str:
    """Hex SHA-256 of the parts, each prefixed with its length in bytes, so that ("a", "bc") and ("ab", "c") differ.

    Lone surrogates (legal in JSON escapes, not in UTF-8) are hashed as their own byte sequence.
    """
    sha = hashlib.sha256()
    for part in parts:
        raw = str(part).encode("utf-8", "surrogatepass")
        sha.update(b"%d:" % len(raw))
        sha.update(raw)
    return sha.hexdigest()


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def projection_key(route: RouteFacts, pack_incarnation: str, lane: SourceLane) -> str:
    """`csp:` + digest of what makes one projection (docs/protocol.md#identity)."""
    return PROJECTION_PREFIX + digest(
        route.namespace,
        pack_incarnation,
        route.event_kind,
        route.key,
        route.version,
        route.companion_pack,
        route.companion_flow,
        route.work_type,
        lane.account,
        *lane.parts,
    )


def generation_work_id(projection_key: str, lane_ordinal: int, event_id: int) -> str:
    """WorkId of a generation that is not the projection's first one, by its LaneOrdinal at creation.

    Rows from before ordinals share ordinal 0; there the selected event tells them apart.
    """
    return PROJECTION_PREFIX + (digest(projection_key, lane_ordinal) if lane_ordinal else digest(projection_key, 0, event_id))


def per_event_work_id(delivery_key: str) -> str:
    return PER_EVENT_PREFIX + digest(delivery_key)


def item_key(namespace: str, pack_name: str, account: str, *delivery: str | int) -> str:
    """Identity of one delivered item, whatever routes take it; the DeliveryKey of the fact that none took.

    `delivery`: what identifies it among all of its account, with the kind of identity first ("event", an id, …). By pack *name*, so
    that an upgrade repeats nothing.
    """
    return digest(namespace, pack_name, account, *delivery)


def delivery_key(item: str, route_key: str) -> str:
    """Identity of the delivered item `item` (an `item_key`) for one route; `route_key` empty: unrouted."""
    return digest(item, route_key) if route_key else item


@lru_cache(_REMEMBERED)
def source_key(account: str, source_type: str, source_id: str) -> str:
    return digest(account, source_type, source_id)


def record_key(namespace: str, pack_name: str, event_kind: str, source: Source) -> str:
    """Identity of a live record: a source record as one canonical event kind sees it."""
    return digest(namespace, pack_name, event_kind, source.account, source.type, source.id)


@lru_cache(_REMEMBERED)
def source_scope_key(namespace: str, event_kind: str, lane: SourceLane, own_route: str = "") -> str:
    """Scope that a replay must have to itself: namespace, canonical event kind and source lane (docs/protocol.md#replay-scope).

    `own_route`: key of a route with a lane of its own, which other routes' replays do not wait for.
    """
    kind = ("route", own_route) if own_route else ("source",)
    return digest(namespace, event_kind, *kind, lane.account, *lane.parts)


@lru_cache(_REMEMBERED)
def lane_key(namespace: str, companion_pack: str, lane: SourceLane, target_lane: str, own_route: str = "") -> str | None:
    """Order domain of execution: the target mutation lane where one is set, else (companion pack, source lane); None = no lane.

    `own_route`: key of a route with `order = "route"`, whose lane no other route shares. A target lane is the text that its route's
    author composed: routes that name it alike take turns, whatever their accounts and templates.
    """
    if target_lane:
        return digest(namespace, "target", target_lane)
    if not lane.parts:
        return None
    kind = ("route", companion_pack, own_route) if own_route else ("source", companion_pack)
    return digest(namespace, *kind, lane.account, *lane.parts)
