"""Retention, in the reference (docs/protocol.md#retention)."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from tests.model.order import in_order
from tests.model.reference import Reference
from tests.model.values import DEAD, Event, Work


def prune(model: Reference, before: datetime, dead_before: datetime, kept: Container[Work]) -> tuple[int, int]:
    """How many events and items went. A replayed item and its replays go together or not at all.

    `kept` are those that the product has left. It may leave more than it must of a projection with rows from before ordinals, from any
    point of its history on: which end is the oldest one is looked at by ordinals, so that such a row keeps what is older for a while.
    """
    gone: list[Work] = []
    events: list[Event] = [event for event in model.events if event.route is None and event.created < before]

    def take(work: Work) -> bool:
        if not all(_is_over(one, before, dead_before) for one in model.works if one.root is work):
            return False
        gone.append(work)
        events.extend(model.inputs(work))
        return True

    for key in {work.key for work in model.works if work.key and work.replay_of is None}:
        by_event = {work.event: work for work in model.ordinary(key)}
        is_mixed = any(event.key == key and not event.ordinal for event in model.events)
        for event in in_order(list(by_event))[:-1]:
            if (is_mixed and by_event[event] in kept) or not take(by_event[event]):
                break
    for work in model.works:
        if work.key is None and work.replay_of is None:
            take(work)
    replays = [work for work in model.works if work.replay_of and work.root in gone]
    events += [work.event for work in replays]
    model.works = [work for work in model.works if work not in gone and work not in replays]
    model.events = [event for event in model.events if event not in events]
    model.known = {name: event for name, event in model.known.items() if event not in events}
    model.owned.difference_update(events)
    model.legacy_results.difference_update(events)
    return len(events), len(gone) + len(replays)


def _is_over(work: Work, before: datetime, dead_before: datetime) -> bool:
    return work.ended is not None and work.ended < (dead_before if work.state == DEAD and not work.discarded else before)
