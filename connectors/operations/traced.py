"""What a trace shows of each row: everything but bodies and payloads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from connectors.models import Receipt
from projection.facts import flow_name
from projection.models import Event, WorkFailure, WorkItem
from projection.states import NONTERMINAL


@dataclass(frozen=True, slots=True)
class TracedReceipt:
    """One HTTP delivery: where it stands, and what became of its items."""

    id: int
    namespace: str
    endpoint_id: int
    delivery_id: str | None
    state: str
    conflict: bool
    """Another body under a delivery id that was taken: kept as evidence, never routed."""
    conflict_hash: str
    body_sha256: str
    received_at: datetime
    routed_at: datetime | None
    attempts: int
    next_attempt_at: datetime | None
    last_error: str | None
    items: int | None
    events: int | None
    duplicates: int | None
    conflicts: int | None
    rejected: int | None
    verdicts: list[Any]
    erased: bool
    """A tombstone: body and headers are gone."""

    @property
    def routed_after(self) -> timedelta | None:
        return None if self.routed_at is None else self.routed_at - self.received_at

    @classmethod
    def of(cls, row: Receipt) -> Self:
        return cls(
            id=row.id,
            namespace=row.namespace,
            endpoint_id=row.endpoint_id,
            delivery_id=row.idempotency_key,
            state=row.state,
            conflict=row.conflict_hash != "",
            conflict_hash=row.conflict_hash,
            body_sha256=row.body_sha256,
            received_at=row.received_at,
            routed_at=row.routed_at,
            attempts=row.attempts,
            next_attempt_at=row.next_attempt_at,
            last_error=row.last_error,
            items=row.item_count,
            events=row.event_count,
            duplicates=row.duplicate_count,
            conflicts=row.conflict_count,
            rejected=row.rejected_count,
            verdicts=json.loads(row.verdicts) if row.verdicts else [],
            erased=row.erasure_id is not None,
        )


@dataclass(frozen=True, slots=True)
class TracedEvent:
    """One immutable fact; its payload is not shown."""

    id: int
    receipt_id: int
    item: int
    namespace: str
    ordinal: int
    kind: str
    provider_kind: str
    account: str
    source_type: str
    source_id: str
    lane: str
    delivery_id: str
    route: str | None
    route_version: int | None
    projection_key: str | None
    replay_of_event_id: int | None
    routed_from_event_id: int | None
    provider_time: datetime | None
    created: datetime
    payload_sha256: str
    erased: bool
    """A tombstone: payload and readable names are gone."""
    due: datetime | None
    """Until when its burst settles; equal to `created` where nothing settles."""
    work_id: str | None
    """What took it: the generation that has it among its inputs, or the item that selects it. None: not known, or no work."""

    @classmethod
    def of(cls, row: Event, work_id: str | None = None) -> Self:
        return cls(
            id=row.id,
            receipt_id=row.receipt_id,
            item=row.receipt_item,
            namespace=row.namespace,
            ordinal=row.enqueue_ordinal,
            kind=row.event_kind,
            provider_kind=row.provider_kind,
            account=row.account,
            source_type=row.source_type,
            source_id=row.source_id,
            lane=row.source_lane,
            delivery_id=row.delivery_id,
            route=json.loads(row.route_snapshot)["key"] if row.route_snapshot else None,
            route_version=row.route_version,
            projection_key=row.projection_key,
            replay_of_event_id=row.replay_of_event_id,
            routed_from_event_id=row.routed_from_event_id,
            provider_time=row.provider_timestamp,
            created=row.created_date,
            payload_sha256=row.payload_sha256,
            erased=row.erasure_id is not None,
            due=row.next_attempt_at,
            work_id=work_id,
        )


@dataclass(frozen=True, slots=True)
class TracedItem:
    """One work item as it stands now."""

    id: int
    work_id: str
    event_id: int
    projection_key: str | None
    active: bool
    """Takes part in execution: nonterminal, and no queued successor."""
    replay_of_work_id: str | None
    state: str
    route_id: int
    route_version: int
    flow: str
    account: str
    lane: str
    lane_key: str | None
    ordinal: int
    attempts: int
    max_attempts: int
    run_after: datetime
    lease_owner: str | None
    lease_expires_at: datetime | None
    first_claimed_at: datetime | None
    claimed_at: datetime | None
    """The newest claim."""
    terminal_at: datetime | None
    discarded_at: datetime | None
    discarded_by: str | None
    discard_reason: str | None
    last_error: str | None
    error_fingerprint: str | None
    created: datetime

    @classmethod
    def of(cls, row: WorkItem) -> Self:
        return cls(
            id=row.id,
            work_id=row.work_id,
            event_id=row.event_id,
            projection_key=row.projection_key,
            active=row.state in NONTERMINAL and (row.projection_key is None or row.projection_active_key is not None),
            replay_of_work_id=row.replay_of_work_id,
            state=row.state,
            route_id=row.route_id,
            route_version=row.route_version,
            flow=flow_name(row.companion_pack, row.companion_flow),
            account=row.account,
            lane=row.source_lane,
            lane_key=row.lane_key,
            ordinal=row.lane_ordinal,
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            run_after=row.run_after,
            lease_owner=row.lease_owner,
            lease_expires_at=row.lease_expires_at,
            first_claimed_at=row.first_claimed_at,
            claimed_at=row.claimed_at,
            terminal_at=row.terminal_at,
            discarded_at=row.discarded_at,
            discarded_by=row.discarded_by,
            discard_reason=row.discard_reason,
            last_error=row.last_error,
            error_fingerprint=row.error_fingerprint,
            created=row.created_date,
        )


@dataclass(frozen=True, slots=True)
class TracedFailure:
    """One failed attempt."""

    id: int
    work_id: str
    attempt: int
    outcome: str
    error: str
    delay_ms: int | None
    worker: str | None
    at: datetime
    times: int = 1
    """Deferred tries in a row are one failure."""
    frames: str = ""

    @classmethod
    def of(cls, row: WorkFailure) -> Self:
        return cls(
            id=row.id,
            work_id=row.work_id,
            attempt=row.attempt,
            outcome=row.outcome,
            error=row.error,
            delay_ms=row.delay_ms,
            worker=row.lease_owner,
            at=row.created_date,
            times=row.times,
            frames=row.frames or "",
        )
