"""One work item with everything that an operator asks about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connectors.operations.traced import TracedFailure, TracedItem
from projection.inputs.lineage import InputSpan, input_span, replay_lineage
from projection.inspection.why import why
from projection.inspection.why_decision import Why
from projection.models import WorkFailure, WorkItem
from projection.states import NONTERMINAL

FAILURES_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class WorkDetail:
    """`successor` is queued behind this item; `lineage` is what it replays and what replays it, oldest first; failures newest last."""

    work_item: TracedItem
    why: Why
    inputs: InputSpan
    failures: list[TracedFailure]
    successor: TracedItem | None
    lineage: list[TracedItem]


def work_detail(work_id: str) -> WorkDetail | None:
    """The detail of a WorkId, None when there is none. About ten statements, two for each level of replay."""
    item = WorkItem.objects.filter(work_id=work_id).first() if work_id.isascii() else None
    if item is None or item.work_id != work_id:
        return None
    failures = WorkFailure.objects.filter(work_item_id=item.id).order_by("-id")[:FAILURES_SHOWN]
    return WorkDetail(
        TracedItem.of(item),
        why(item),
        input_span(item),
        [TracedFailure.of(row) for row in reversed(failures)],
        _successor(item),
        [TracedItem.of(row) for row in replays(item)],
    )


def replays(item: WorkItem) -> list[WorkItem]:
    """What the item replays and what replays it, through all levels, oldest first. Two queries a level."""
    return list(WorkItem.objects.filter(id__in=replay_lineage([item]) - {item.id}).order_by("lane_ordinal", "id"))


def _successor(item: WorkItem) -> TracedItem | None:
    if item.projection_active_key is None:
        return None
    queued = WorkItem.objects.filter(
        projection_key=item.projection_key, state__in=sorted(NONTERMINAL), projection_active_key=None
    ).first()
    return TracedItem.of(queued) if queued else None
