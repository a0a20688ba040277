"""Keys that decide identity: SHA-256 over length-prefixed parts, never a database collation.

Text equality in a database depends on collation (case, accents, emoji weight, trailing spaces); equality of these keys does not.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from projection.facts import RouteFacts

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


def projection_key(route: RouteFacts, pack_incarnation: str, source_lane: str) -> str:
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
        source_lane,
    )


def generation_work_id(projection_key: str, lane_ordinal: int, event_id: int) -> str:
    """WorkId of a generation that is not the projection's first one, by its LaneOrdinal at creation.

    Rows from before ordinals share ordinal 0; there the selected event tells them apart.
    """
    return PROJECTION_PREFIX + (digest(projection_key, lane_ordinal) if lane_ordinal else digest(projection_key, 0, event_id))


def per_event_work_id(delivery_key: str) -> str:
    return PER_EVENT_PREFIX + digest(delivery_key)


def delivery_key(namespace: str, pack_name: str, delivery_id: str, route_key: str) -> str:
    """Identity of one delivered item for one route (`route_key` empty: unrouted). By pack *name*, so upgrades do not repeat."""
    return digest(namespace, pack_name, delivery_id, route_key)


@lru_cache(_REMEMBERED)
def source_key(source_type: str, source_id: str) -> str:
    return digest(source_type, source_id)


@lru_cache(_REMEMBERED)
def source_scope_key(namespace: str, event_kind: str, source_lane: str) -> str:
    """Scope that a replay must have to itself: namespace, canonical event kind and source lane (docs/protocol.md#replay-scope)."""
    return digest(namespace, event_kind, source_lane)


@lru_cache(_REMEMBERED)
def lane_key(namespace: str, companion_pack: str, source_lane: str, target_lane: str) -> str | None:
    """Order domain of execution: the target mutation lane where one is set, else (companion pack, source lane); None = no lane."""
    if target_lane:
        return digest(namespace, "target", target_lane)
    if source_lane:
        return digest(namespace, "source", companion_pack, source_lane)
    return None
