"""The one pure decision: what a new event does to the generations of its projection (docs/protocol.md#decision).

Single events, batches, sweep and repair all decide here, on values that were read under the namespace lock and the rows' locks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from projection.identity import generation_work_id
from projection.order import Place
from projection.refusals import Ambiguous
from projection.rows import WorkRow


@dataclass(frozen=True, slots=True)
class Create:
    """Insert a generation: the active one, or the queued successor."""

    work_id: str
    active: bool


@dataclass(frozen=True, slots=True)
class Advance:
    """Move an unclaimed generation's selection to the newer event; its LanePosition stays and its RunAfter never moves later."""

    row: WorkRow
    activate: bool = False
    """A handoff was lost: the successor stands alone and becomes the active generation."""


Decision = Create | Advance


def decide(projection_key: str, head: Place, current: Sequence[WorkRow], *, is_first: bool) -> Decision:
    """What `head`, the newest event of the key, does given the key's nonterminal generations.

    `is_first` tells that no generation of the key is retained, so that the WorkId may be the ProjectionKey itself. Raises Ambiguous
    when the rows break the protocol: nothing may then be written.
    """
    active = [row for row in current if row.is_nonterminal and row.active_key is not None]
    successors = [row for row in current if row.is_successor]
    if len(active) > 1 or len(successors) > 1:
        raise Ambiguous(f"projection {projection_key} has {len(active)} active and {len(successors)} queued generations")
    if successors:
        return Advance(successors[0], activate=not active)
    work_id = projection_key if is_first else generation_work_id(projection_key, head.ordinal, head.event_id)
    if not active:
        return Create(work_id, active=True)
    if is_frozen(active[0]):
        return Create(work_id, active=False)
    return Advance(active[0])


def is_frozen(active: WorkRow) -> bool:
    """Whether the active generation's inputs may no longer grow: it was claimed once, or it is a replay (which would swallow news)."""
    return active.claimed_at is not None or active.is_replay
