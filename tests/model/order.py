"""Order of events, and which generation an event belongs to (docs/protocol.md#order), by brute force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from tests.model.values import Event


def precedes(left: Event, right: Event) -> bool:
    if left.ordinal and right.ordinal:
        return left.ordinal < right.ordinal
    return _ingress(left) < _ingress(right)


def _ingress(event: Event) -> tuple[object, ...]:
    return event.created, event.sequence, event.number


def latest(events: Iterable[Event]) -> Event:
    return reduce(lambda best, event: event if precedes(best, event) else best, events)


def in_order(events: Sequence[Event]) -> list[Event]:
    """Along the pairwise edges; those of a true cycle by ingress."""
    if all(event.ordinal for event in events):
        return sorted(events, key=lambda event: event.ordinal)
    ahead = {event: {event} for event in events}
    """What leads to each event, by any number of edges."""
    for _ in events:
        for event in events:
            ahead[event] |= {far for near in events if precedes(near, event) for far in ahead[near]}
    return sorted(events, key=lambda event: (len(ahead[event]), _ingress(event)))


def owner(event: Event, selections: Sequence[Event]) -> Event | None:
    """Of the selections of a key's ordinary generations, oldest first, the one whose generation the event belongs to."""
    return next((selected for selected in selections if not precedes(selected, event)), None)
