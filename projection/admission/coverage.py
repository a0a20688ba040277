"""Coverage: whether a known event is already represented by retained work (docs/protocol.md#coverage).

Coverage is not success: a dead generation covers its inputs too, and only replay runs them again. Joins the admitted transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from projection.database.catalogue import chunks
from projection.facts import InboundEvent
from projection.identity import per_event_work_id
from projection.models import Event, WorkItem
from projection.order import Membership, Place
from projection.rows import KnownEvent

DELIVERIES_A_STATEMENT: Final = 1000
KEYS_A_STATEMENT: Final = 128


@dataclass(frozen=True, slots=True)
class Known:
    """An inbound event whose delivery is known: `event` is the row that stands (None: an earlier item of the same batch stands)."""

    inbound: InboundEvent
    event: KnownEvent | None
    is_conflict: bool
    """The payload differs from the one that stands; recorded, never applied."""
    first: InboundEvent | None = None
    """The earlier item of the same batch that stands; None when a stored event does."""

    @property
    def erasure_id(self) -> int | None:
        """The erasure of the event that stands: what comes again must not bring it back."""
        return self.event.erasure_id if self.event else None


def find_known(events: Sequence[InboundEvent]) -> tuple[list[InboundEvent], list[Known]]:
    """(fresh events in order, known ones): by delivery key, against the table and inside the batch, where the first stands."""
    keys = sorted({key for event in events for key in (event.delivery_key, *event.sibling_keys)})
    stored = {
        row.delivery_key: row
        for chunk in chunks(keys, DELIVERIES_A_STATEMENT)
        for row in Event.objects.read_known_deliveries(chunk)
    }
    fresh: dict[str, InboundEvent] = {}
    known: list[Known] = []
    for event in events:
        keys_of_event = (event.delivery_key, *event.sibling_keys)
        row = next((stored[key] for key in keys_of_event if key in stored), None)
        first = next((fresh[key] for key in keys_of_event if key in fresh), None)
        if row is not None:
            known.append(Known(event, row, row.payload_sha256 != event.payload_sha256))
        elif first is not None:
            known.append(Known(event, None, first.payload_sha256 != event.payload_sha256, first))
        else:
            fresh[event.delivery_key] = event
    return list(fresh.values()), known


def uncovered(known: Sequence[Known]) -> list[int]:
    """Ids of the known, routed events that no retained work represents: their task is missing and is made again.

    A projection's event is covered by an ordinary generation at or after it (a replay represents only its own inputs); a per-event
    one by its work item. One bounded, index-only statement per chunk and class; none when nothing is known.
    """
    return uncovered_events([item.event for item in known if item.event is not None])


def uncovered_events(rows: Sequence[KnownEvent]) -> list[int]:
    """As `uncovered`, for stored events."""
    routed = {row.id: row for row in rows if row.route_id is not None}.values()
    projected = [row for row in routed if row.projection_key is not None]
    single = [row for row in routed if row.projection_key is None]
    missing: list[int] = []
    for chunk in chunks(projected, KEYS_A_STATEMENT):
        newest = WorkItem.objects.read_newest_ordinary([row.id for row in chunk])
        missing += _unrepresented([row for row in chunk if not _is_at_or_after(newest.get(row.id), row.ordinal)])
    for items in chunks(single, DELIVERIES_A_STATEMENT):
        work_ids = {per_event_work_id(row.delivery_key): row.id for row in items}
        existing = WorkItem.objects.read_per_event_work(list(work_ids))
        missing += [event_id for work_id, event_id in work_ids.items() if work_id not in existing]
    return sorted(missing)


def _is_at_or_after(newest_ordinal: int | None, ordinal: int) -> bool:
    """Proof by ordinals alone; rows from before ordinals (0) prove nothing."""
    return newest_ordinal is not None and newest_ordinal >= ordinal > 0


def _unrepresented(rows: Sequence[KnownEvent]) -> list[int]:
    """Of events that ordinals alone do not prove covered: those that no generation represents by pairwise order. Rarely any."""
    keys = {row.projection_key for row in rows if row.projection_key}
    if not keys:
        return []
    selections: dict[str, list[Place]] = {key: [] for key in keys}
    for key, _, place in WorkItem.objects.read_selections(keys):
        selections[key].append(place)
    memberships = {key: Membership(places) for key, places in selections.items()}
    return [row.id for row in rows if row.projection_key and memberships[row.projection_key].owner(row.place) is None]
