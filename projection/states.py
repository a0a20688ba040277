"""States of a work item, and who moves each one on.

state        moved on by                                                         to
pending      claim (RunAfter due, lane free) · cancel ·                          processing · cancelled ·
             the copy of an old binary's result (`admission/older_workers`)      processed, skipped, dead
blocked      what ends the row ahead of it (complete, dead-letter,               pending · cancelled ·
             cancel, rescue); a queued successor: the end of the active          processed, skipped, dead
             generation; else repair · cancel · as above
processing   the worker that holds the lease (complete, retry, dead-letter,      processed · skipped · dead · retry
             hand-back) · rescue when the lease ran out
retry        claim at RunAfter (still holds its lane) · cancel                   processing · cancelled
processed, skipped, dead, cancelled   nobody: terminal history is never reopened; replay makes a new item
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    PENDING = "pending"
    BLOCKED = "blocked"
    PROCESSING = "processing"
    RETRY = "retry"
    PROCESSED = "processed"
    SKIPPED = "skipped"
    DEAD = "dead"
    CANCELLED = "cancelled"


NONTERMINAL: Final = frozenset({State.PENDING, State.BLOCKED, State.PROCESSING, State.RETRY})
TERMINAL: Final = frozenset({State.PROCESSED, State.SKIPPED, State.DEAD, State.CANCELLED})

EXECUTED: Final = frozenset({State.PROCESSED, State.SKIPPED, State.DEAD})
"""How an attempt can end an item."""

LEGAL: Final[dict[State, frozenset[State]]] = {
    State.PENDING: frozenset({State.PROCESSING, State.CANCELLED, *EXECUTED}),
    State.BLOCKED: frozenset({State.PENDING, State.CANCELLED, *EXECUTED}),
    State.PROCESSING: frozenset({State.RETRY, *EXECUTED}),
    State.RETRY: frozenset({State.PROCESSING, State.CANCELLED}),
    State.PROCESSED: frozenset(),
    State.SKIPPED: frozenset(),
    State.DEAD: frozenset(),
    State.CANCELLED: frozenset(),
}
"""The transitions that the protocol knows. A test holds the statements against it."""


class ExecutionClass(StrEnum):
    PROJECTION = "projection"
    PER_EVENT = "per_event"


class ReceiptState(StrEnum):
    PENDING = "pending"
    ROUTED = "routed"
    PARTIAL = "partial"
    """As `routed`, but an item was rejected, or conflicts with an earlier delivery."""
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    CONFLICT = "conflict"
