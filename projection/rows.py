"""Rows as the locking statements return them: frozen, times aware. Their field order is the statements' column order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from projection.database.clock import aware
from projection.order import Place
from projection.states import NONTERMINAL, State

WORK_COLUMNS: Final = (
    "Id, WorkId, ProjectionKey, ProjectionActiveKey, ReplayOfWorkId, EventId, Namespace, ExecutionClass, LaneKey, LanePosition, "
    "LaneOrdinal, EventCreatedDate, DeliverySequence, State, RunAfter, Attempts, MaxAttempts, LeaseToken, ClaimedAt, SourceScopeKey, "
    "LeaseExpiresAt, CreatedDate, SourceLane, DiscardedAt, TerminalAt, FirstClaimedAt, "
    "StartedAt IS NOT NULL, WorkersLost"
)
"""The columns of a WorkRow: `{work_columns}` in the SQL texts."""
STATE: Final = WORK_COLUMNS.split(", ").index("State")


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A work item as read (and usually locked)."""

    id: int
    work_id: str
    projection_key: str | None
    active_key: str | None
    replay_of_work_id: str | None
    event_id: int
    namespace: str
    execution_class: str
    lane_key: str | None
    lane_position: int
    lane_ordinal: int
    event_created: datetime
    delivery_sequence: int
    state: State
    run_after: datetime
    attempts: int
    max_attempts: int
    lease_token: str | None
    claimed_at: datetime | None
    scope_key: str
    lease_expires_at: datetime | None
    created: datetime
    source_lane: str
    discarded_at: datetime | None
    terminal_at: datetime | None
    first_claimed_at: datetime | None = None
    is_started: int = 0
    """Whether its flow has begun, or was about to, under its newest lease."""
    workers_lost: int = 0

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        values = aware(row)
        values[STATE] = State(values[STATE])
        return cls(*values)

    @property
    def selection(self) -> Place:
        """Order snapshot of the selected event."""
        return Place(self.event_id, self.lane_ordinal, self.event_created, self.delivery_sequence)

    @property
    def is_nonterminal(self) -> bool:
        return self.state in NONTERMINAL

    @property
    def is_successor(self) -> bool:
        """A queued successor: nonterminal, of a projection, without the active key."""
        return self.is_nonterminal and self.projection_key is not None and self.active_key is None

    @property
    def is_replay(self) -> bool:
        return self.replay_of_work_id is not None

    @property
    def is_live(self) -> bool:
        """Takes part in its lane: nonterminal and, for projections, holding the active key (docs/protocol.md#lanes)."""
        return self.is_nonterminal and not self.is_successor


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event that a delivery key is already taken by."""

    id: int
    delivery_key: str
    payload_sha256: str
    projection_key: str | None
    ordinal: int
    created: datetime
    delivery_sequence: int
    next_attempt_at: datetime | None
    route_id: int | None
    erasure_id: int | None = None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        return cls(*aware(row))

    @property
    def place(self) -> Place:
        return Place(self.id, self.ordinal, self.created, self.delivery_sequence)


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A live, unblocked row of a lane."""

    id: int
    lane_key: str
    state: State
    position: int
    run_after: datetime

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        id, lane_key, state, position, run_after = aware(row)
        return cls(id, lane_key, State(state), position, run_after)


EVENT_COLUMNS: Final = (
    "Id, EnqueueOrdinal, ProviderKind, SourceType, SourceId, DeliveryId, ProviderTimestamp, Payload, PayloadSha256, CreatedDate, "
    "ReplayOfEventId, Account, ReceiptId, DeliverySequence"
)
"""The columns of an EventRow: `{event_columns}` in the SQL texts."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as a flow will see it; `kind` is the provider's (the canonical one is the route's)."""

    id: int
    ordinal: int
    kind: str
    source_type: str
    source_id: str
    delivery_id: str
    provider_time: datetime | None
    payload: str
    payload_sha256: str
    created: datetime
    replay_of_event_id: int | None
    account: str = ""
    receipt_id: int = 0
    item: int = 0

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        return cls(*aware(row))


FACT_COLUMNS: Final = (
    "Id, Namespace, PackId, PackIncarnation, ReceiptId, RouteSnapshot, ProviderKind, Account, SourceType, SourceId, SourceLane, "
    "LaneCuts, TargetMutationLane, DeliveryId, DeliveryKey, DeliverySequence, EnqueueOrdinal, ProviderTimestamp, Payload, PayloadSha256, "
    "ProjectionKey, ReplayOfEventId, NextAttemptAt, CreatedDate, ErasureId"
)
"""The columns of a stored fact (`admission/stored_events.py`): `{fact_columns}` in the SQL texts."""


def prefixed(alias: str, columns: str) -> str:
    """`w` + "Id, WorkId" → "w.Id, w.WorkId"."""
    return ", ".join(f"{alias}.{column.strip()}" for column in columns.split(","))
