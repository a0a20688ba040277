"""What admission writes: tuples in the column order of `insert_events` and `insert_work_items`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from projection.database.clock import to_db
from projection.facts import InboundEvent, RouteFacts
from projection.identity import lane_key, per_event_work_id, projection_key, source_key, source_scope_key
from projection.order import Place
from projection.states import ExecutionClass, State


@dataclass(frozen=True, slots=True)
class Fact:
    """An event of this admission that now is (or already was) a row, with the place it has in the order."""

    inbound: InboundEvent
    route: RouteFacts
    place: Place
    projection_key: str | None
    run_after: datetime

    @property
    def lane(self) -> str | None:
        return lane_of(self.inbound, self.route)


def lane_of(event: InboundEvent, route: RouteFacts) -> str | None:
    """The lane in which the event's work runs; a projection keeps to its source lane (docs/protocol.md#target-lane)."""
    target = "" if event.is_projected else event.target_lane
    own_route = route.own_route if event.is_projected else ""
    return lane_key(event.namespace, route.companion_pack, event.lane, target, own_route)


def scope_of(event: InboundEvent, route: RouteFacts) -> str:
    """The scope that a replay of the event's work must have to itself."""
    return source_scope_key(event.namespace, route.event_kind, event.lane, route.own_route if event.is_projected else "")


def key_of(event: InboundEvent) -> str | None:
    """The projection that the event belongs to; None for per-event and unrouted ones."""
    if not event.is_projected or event.route is None:
        return None
    return projection_key(event.route, event.pack_incarnation, event.lane)


def event_row(
    event: InboundEvent,
    ordinal: int,
    now: datetime,
    *,
    projection: str | None,
    next_attempt_at: datetime | None,
    snapshot: str | None,
    fenced: bool,
    replay_of: int | None = None,
) -> tuple[Any, ...]:
    """One row of `insert_events`. `fenced`: owned by its work item from the start (after activation)."""
    route = event.route
    return (
        event.namespace, event.pack_id, event.pack_incarnation, event.receipt_id, event.item,
        route.id if route else None, route.version if route else None, snapshot, event.event_kind, event.provider_kind,
        event.account, event.source_type, event.source_id, source_key(event.account, event.source_type, event.source_id),
        event.source_lane, event.lane_cuts, event.target_lane, event.delivery_id, event.delivery_key, event.item, ordinal,
        event.routed_from, to_db(event.provider_time), event.payload, event.payload_sha256, projection, replay_of,
        "work_item" if fenced else "event", "skipped" if fenced else "pending", 0,
        to_db(next_attempt_at), to_db(now),
    )  # fmt: skip


def work_row(
    fact: Fact,
    *,
    work_id: str,
    active_key: str | None,
    state: State,
    now: datetime,
    position: int,
    replay_of: str | None = None,
) -> tuple[Any, ...]:
    """One row of `insert_work_items`, selecting the fact's event."""
    event, route, place = fact.inbound, fact.route, fact.place
    execution_class = ExecutionClass.PROJECTION if fact.projection_key else ExecutionClass.PER_EVENT
    return (
        work_id, fact.projection_key, active_key, replay_of, place.event_id, event.namespace, event.pack_id, route.id, route.version,
        route.companion_pack, route.companion_flow, route.work_type, execution_class.value,
        scope_of(event, route), event.account, event.source_lane, fact.lane, position, place.ordinal,
        to_db(place.created), place.sequence, route.queue_class, state.value, to_db(fact.run_after), 0,
        route.retry.attempts, to_db(now),
    )  # fmt: skip


def per_event_id(fact: Fact) -> str:
    return per_event_work_id(fact.inbound.delivery_key)


def positions(facts: Sequence[Fact]) -> list[Fact]:
    """Facts in admission order, which is lane order."""
    return sorted(facts, key=lambda fact: (fact.place.ordinal, fact.place.event_id))
