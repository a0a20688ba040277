"""Events and work items as admission writes them, built directly: for tests of what reads them (audit, why, trace).

Every key is the one `projection.identity` makes, ordinals come from the namespace's row, and a state brings its own columns
(lease, holder, times), so that rows break an invariant only where a test says so. Each call commits.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from connectors.models import Namespace
from projection import identity
from projection.database.clock import now
from projection.facts import PER_EVENT, PROJECTION, RouteFacts, SourceLane
from projection.models import Event, WorkFailure, WorkItem
from projection.states import TERMINAL, ExecutionClass, State


def route_of(key: str = "contact", *, mode: str = PROJECTION, **members: Any) -> RouteFacts:
    """Facts of a published route without any row behind them; `id` and `pack_id` default to 1."""
    defaults: dict[str, Any] = {
        "id": 1,
        "namespace": "default",
        "pack_id": 1,
        "pack_name": "generic",
        "key": key,
        "version": 1,
        "provider_kinds": ("*",),
        "event_kind": f"{key}.changed",
        "mode": mode,
        "companion_pack": "headrace",
        "companion_flow": "log",
        "work_type": "log",
    }
    return RouteFacts(**{**defaults, **members})


CONTACTS = route_of()
PAGES = route_of("page", mode=PER_EVENT, id=2)


def _next_ordinal(namespace: str) -> int:
    row, _ = Namespace.objects.get_or_create(name=namespace)
    Namespace.objects.filter(name=namespace).update(next_enqueue_ordinal=row.next_enqueue_ordinal + 1)
    return int(row.next_enqueue_ordinal)


def event_row(route: RouteFacts | None = CONTACTS, *, source_id: str = "42", source_type: str = "contact", **columns: Any) -> Event:
    """An admitted event of `route` (None: unrouted), in the lane `type:id` unless `source_lane` says otherwise."""
    namespace = columns.pop("namespace", route.namespace if route else "default")
    incarnation = columns.setdefault("pack_incarnation", "incarnation-1")
    account = columns.setdefault("account", "")
    lane = columns.pop("source_lane", f"{source_type}:{source_id}")
    parts = SourceLane.of(account, lane, columns.setdefault("lane_cuts", ""))
    delivery_id = columns.pop("delivery_id", uuid.uuid4().hex)
    payload = columns.setdefault("payload", '{"v":1}')
    projected = route is not None and route.is_projection and lane != ""
    values: dict[str, Any] = {
        "namespace": namespace,
        "pack_id": route.pack_id if route else 1,
        "receipt_id": 0,
        "receipt_item": 0,
        "route_id": route.id if route else None,
        "route_version": route.version if route else None,
        "route_snapshot": route.snapshot() if route else None,
        "event_kind": route.event_kind if route else "unknown",
        "provider_kind": "contact.changed",
        "source_type": source_type,
        "source_id": source_id,
        "source_key": identity.source_key(account, source_type, source_id),
        "source_lane": lane,
        "delivery_id": delivery_id,
        "delivery_key": identity.delivery_key(
            identity.item_key(namespace, route.pack_name if route else "generic", account, "event", delivery_id, 0),
            route.key if route else "",
        ),
        "delivery_sequence": 0,
        "payload_sha256": identity.sha256_text(payload),
        "projection_key": identity.projection_key(route, incarnation, parts) if projected and route else None,
        "executor_owner": "work_item",
        "status": "skipped",
        "created_date": now(),
    }
    if "enqueue_ordinal" not in columns:
        columns["enqueue_ordinal"] = _next_ordinal(namespace)
    return Event.objects.create(**{**values, **columns})


def replay_event_row(original: Event, **columns: Any) -> Event:
    """The event that a replay of `original` makes: same payload and route, its own delivery id and ordinal."""
    route = RouteFacts.from_snapshot(original.route_snapshot or "")
    return event_row(
        route,
        source_type=original.source_type,
        source_id=original.source_id,
        **{
            "account": original.account,
            "source_lane": original.source_lane,
            "lane_cuts": original.lane_cuts,
            "pack_incarnation": original.pack_incarnation,
            "payload": original.payload,
            "payload_sha256": original.payload_sha256,
            "delivery_id": f"replay:{uuid.uuid4()}",
            "replay_of_event_id": original.id,
            **columns,
        },
    )


def work_row(event: Event, state: str = State.PENDING, **columns: Any) -> WorkItem:
    """A work item that selects `event`. The first generation of a projection has its key as WorkId; a `blocked` one beside an active
    generation is its queued successor."""
    route = RouteFacts.from_snapshot(event.route_snapshot or "")
    key = event.projection_key
    parts, own_route = SourceLane.of(event.account, event.source_lane, event.lane_cuts), route.own_route if key else ""
    lane = identity.lane_key(event.namespace, route.companion_pack, parts, event.target_mutation_lane, own_route)
    known = WorkItem.objects.filter(projection_key=key) if key else WorkItem.objects.none()
    queued = state == State.BLOCKED and known.filter(projection_active_key=key).exists()
    values: dict[str, Any] = {
        "work_id": _work_id(event, is_first=not known.exists()),
        "projection_key": key,
        "projection_active_key": None if queued or state in TERMINAL else key,
        "event_id": event.id,
        "namespace": event.namespace,
        "pack_id": event.pack_id,
        "route_id": event.route_id,
        "route_version": event.route_version,
        "companion_pack": route.companion_pack,
        "companion_flow": route.companion_flow,
        "work_type": route.work_type,
        "execution_class": ExecutionClass.PROJECTION if key else ExecutionClass.PER_EVENT,
        "source_scope_key": identity.source_scope_key(event.namespace, event.event_kind, parts, own_route),
        "account": event.account,
        "source_lane": event.source_lane,
        "lane_key": lane,
        "lane_position": event.enqueue_ordinal,
        "lane_ordinal": event.enqueue_ordinal,
        "event_created_date": event.created_date,
        "delivery_sequence": event.delivery_sequence,
        "queue_class": route.queue_class,
        "state": state,
        "run_after": now(),
        "max_attempts": route.retry.attempts,
        "created_date": now(),
        **_state_columns(state, lane),
    }
    return WorkItem.objects.create(**{**values, **columns})


def replay_row(dead: WorkItem, state: str = State.PENDING, **columns: Any) -> WorkItem:
    """The generation that a replay of `dead` makes."""
    event = replay_event_row(Event.objects.get(id=dead.event_id))
    work_id = identity.generation_work_id(f"replay of {dead.work_id}", event.enqueue_ordinal, event.id)
    return work_row(event, state, **{"work_id": work_id, "replay_of_work_id": dead.work_id, **columns})


def failure_row(item: WorkItem, error: str = "ValueError: no", **columns: Any) -> WorkFailure:
    values: dict[str, Any] = {
        "work_item_id": item.id,
        "work_id": item.work_id,
        "attempt": 1,
        "outcome": "retry",
        "error": error,
        "error_fingerprint": identity.sha256_text(error),
        "created_date": now(),
    }
    return WorkFailure.objects.create(**{**values, **columns})


def _work_id(event: Event, *, is_first: bool) -> str:
    if event.projection_key is None:
        return identity.per_event_work_id(event.delivery_key)
    return event.projection_key if is_first else identity.generation_work_id(event.projection_key, event.enqueue_ordinal, event.id)


def _state_columns(state: str, lane: str | None) -> dict[str, Any]:
    claimed = {"claimed_at": now(), "attempts": 1, "lane_holder_key": lane}
    if state == State.PROCESSING:
        lease = {"lease_owner": "worker-1", "lease_token": str(uuid.uuid4()), "lease_expires_at": now() + timedelta(minutes=1)}
        return {**claimed, **lease}
    if state == State.RETRY:
        return {**claimed, "run_after": now() + timedelta(hours=1)}
    if state in TERMINAL:
        return {"claimed_at": now(), "attempts": 1, "terminal_at": now()}
    return {}


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
