"""A generation's inputs and neighbours for a page: the newest events of its range, and who is before and after it.

The authority on what a flow gets is `projection.inputs.ranges`; `projection.inputs.lineage` reads the same ranges by id, bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet

from projection.inputs.lineage import event_ids_of, input_span, items_of, root_of
from projection.models import Event, WorkItem

INPUTS_SHOWN: Final = 200
WORK_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Range:
    """The inputs of one generation in the flow's order, the newest ones when there are more than a page shows."""

    inputs: list[Event]
    count: int

    @property
    def more(self) -> bool:
        return self.count > len(self.inputs)


def inputs(item: WorkItem) -> Range:
    """What the flow of `item` is given: a replay gets its own event in the place of its root's selected one. Some six queries."""
    ids = event_ids_of([item], INPUTS_SHOWN)
    root = root_of(item)
    if root is not None and root.id != item.id:
        ids -= {root.event_id}
    rows = Event.objects.defer("payload", "route_snapshot", "last_error").filter(id__in=ids)
    events = sorted(rows, key=lambda event: (event.id == item.event_id, event.enqueue_ordinal, event.id))
    return Range(events, max(input_span(item).count, len(events)))


def work_of(event: Event) -> list[WorkItem]:
    """The work items that took `event`: those that select it, and the generation whose range holds it. At most four queries."""
    return list(WorkItem.objects.filter(id__in=items_of([event], WORK_SHOWN)).order_by("id"))


def before(item: WorkItem) -> WorkItem | None:
    """The ordinary generation just before `item` in its projection: the lower bound of its range (index ix_work_coverage)."""
    rows = _ordinary_generations(item).filter(lane_ordinal__lte=item.lane_ordinal)
    return (
        rows.filter(Q(lane_ordinal__lt=item.lane_ordinal) | Q(event_id__lt=item.event_id))
        .order_by("-lane_ordinal", "-event_id")
        .first()
    )


def after(item: WorkItem) -> WorkItem | None:
    """The ordinary generation just after `item`: its successor, queued or long since run (index ix_work_coverage)."""
    rows = _ordinary_generations(item).filter(lane_ordinal__gte=item.lane_ordinal)
    return (
        rows.filter(Q(lane_ordinal__gt=item.lane_ordinal) | Q(event_id__gt=item.event_id))
        .order_by("lane_ordinal", "event_id")
        .first()
    )


def _ordinary_generations(item: WorkItem) -> QuerySet[WorkItem]:
    return WorkItem.objects.filter(projection_key=item.projection_key, replay_of_work_id=None)
