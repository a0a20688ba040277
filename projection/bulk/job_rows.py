"""Rows of bulk jobs as their statements return them, and the states with who moves each one on (docs/states.md#bulk-jobs).

job          moved on by                                                       to
preview      an operator · retention, where nobody confirmed it                running, cancelled · (removed)
running      its own last step · an operator                                   finished · paused, cancelled
paused       an operator                                                       running, cancelled
cancelled    nobody (its steps only mark what is open as skipped)
finished     nobody

item         moved on by                                                       to
waiting      the step that takes it · a cancelled job                          done, refused, deferred · skipped
deferred     a step, once no replay of the job is active in its scope ·        done, refused · skipped
             a cancelled job
done, refused, skipped   nobody
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

from projection.database.clock import aware


class JobKind(StrEnum):
    REPLAY = "replay"
    DISCARD = "discard"


class JobState(StrEnum):
    PREVIEW = "preview"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"


class ItemState(StrEnum):
    WAITING = "waiting"
    DONE = "done"
    REFUSED = "refused"
    DEFERRED = "deferred"
    SKIPPED = "skipped"


JOB_COLUMNS: Final = (
    "Id, Kind, Filter, Reason, Actor, Retarget, Rate, State, Step, AfterTime, AfterId, Total, Done, Refused, Deferred, Skipped, "
    "Expected, CreatedDate, FixedAt, FinishedAt, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), NextStepAt)"
)
"""The columns of a JobRow: `{job_columns}` in the SQL texts."""
ITEM_COLUMNS: Final = "Id, Place, WorkItemId, WorkId, Namespace, ScopeKey, State, Code, Reason, ReplayWorkId"
"""The columns of a JobItemRow: `{item_columns}` in the SQL texts."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the members of a job would come to, each as things stood when it became one; all of them once the membership is fixed."""

    possible: int = 0
    """Replayed (or discarded) at once."""
    deferred: int = 0
    """Replayed too, but behind another one of their source."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """By code."""
    after_newer: int = 0
    """Of those replayed: how many would run after a newer item of their lane and source has succeeded (state could go backwards)."""
    looked_at: int = 0
    """Dead items that were looked at, members or not."""

    @property
    def refusals(self) -> int:
        return sum(self.refused.values())

    @property
    def total(self) -> int:
        return self.possible + self.deferred + self.refusals

    def plus(self, part: Expected) -> Expected:
        return Expected(
            self.possible + part.possible,
            self.deferred + part.deferred,
            dict(Counter(self.refused) + Counter(part.refused)),
            self.after_newer + part.after_newer,
            self.looked_at + part.looked_at,
        )


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as read. Its counts belong to its `step`."""

    id: int
    kind: JobKind
    filter: str
    reason: str
    actor: str
    retarget: bool
    rate: int
    """Items acted on in a second, at most; 0 = as fast as it goes."""
    state: JobState
    step: int
    after_time: datetime | None
    after_id: int
    total: int
    done: int
    refused: int
    deferred: int
    skipped: int
    expected: Expected
    created: datetime
    """When it was made; its members died by then. Once a counted preview is confirmed: when that was."""
    fixed: datetime | None
    finished: datetime | None
    due_in: float | None
    """Seconds until its next step, negative when it is overdue; None: nothing is to be done."""

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        id, kind, filter, reason, actor, retarget, rate, state, *counts, expected, created, fixed, finished, due_in = aware(row)
        seconds = None if due_in is None else due_in / 1_000_000
        told = Expected(**json.loads(expected)) if expected else Expected()
        values: list[Any] = [id, JobKind(kind), filter, reason, actor, bool(retarget), rate, JobState(state), *counts]
        values += [told, created, fixed, finished, seconds]
        return cls(*values)

    @property
    def waiting(self) -> int:
        """Items that no step has taken yet."""
        return self.total - self.done - self.refused - self.deferred - self.skipped

    @property
    def is_due(self) -> bool:
        return self.due_in is not None and self.due_in <= 0


@dataclass(frozen=True, slots=True)
class JobItemRow:
    """One item of a job as read."""

    id: int
    place: int
    work_item_id: int
    work_id: str
    namespace: str
    scope_key: str | None
    state: ItemState
    code: str
    reason: str | None
    replay_work_id: str | None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        *before, state, code, reason, replay_work_id = row
        values: list[Any] = [*before, ItemState(state), code, reason, replay_work_id]
        return cls(*values)
