"""Replay of dead work, in the reference (docs/protocol.md#replay)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.reference import Reference
from tests.model.values import CANCELLED, DEAD, Event, Route, Work


def replay(model: Reference, dead: Sequence[Work], targets: dict[tuple[str, str], Route]) -> list[str]:
    """One answer each: empty (replayed), `deferred`, or the code of the refusal. `targets`: (namespace, route key) → version to run
    under.
    """
    answers = {work: _refusal(model, work) for work in dead}
    last = {work: newest(model, work) for work in dead}
    places = {work: place for place, work in enumerate(model.works)}
    namespaces = [work.event.namespace for work in dead]
    """One unit each, in this order."""
    taken: list[object] = []
    for work in sorted(
        (one for one in dead if not answers[one]),
        key=lambda one: (namespaces.index(one.event.namespace), last[one].first, places[last[one]]),
    ):
        found = last[work]
        if found in taken or (found.key and found.scope in taken):
            answers[work] = "deferred"
        else:
            taken += [found, found.scope] if found.key else [found]
            _replay(model, found, targets.get((found.event.namespace, found.route.key), found.route))
    return [answers[work] for work in dead]


def newest(model: Reference, work: Work) -> Work:
    """The last of its replays; itself without any."""
    found = next((one for one in model.works if one.replay_of is work), None)
    return work if found is None else newest(model, found)


def _refusal(model: Reference, work: Work) -> str:
    last = newest(model, work)
    if work.state != DEAD:
        return "not_dead"
    if work.discarded:
        return "discarded"
    if last is not work and last.state not in (DEAD, CANCELLED):
        return "already_replayed"
    if last.key and any(one.key and one.is_open and one.scope == last.scope for one in model.works):
        return "active_generation"
    return ""


def _replay(model: Reference, dead: Work, route: Route) -> None:
    namespace, replayed = dead.event.namespace, dead.event
    model.written += 1
    ordinal = model.next_ordinal.get(namespace, 1)
    model.next_ordinal[namespace] = ordinal + 1
    event = Event(
        model.written,
        namespace,
        ordinal,
        model.now,
        replayed.sequence,
        replayed.item,
        route,
        owned_by_event=not model.activated,
        replay_of=replayed.number,
    )
    model.events.append(event)
    if event.owned_by_event:
        model.owned.add(event)
    model.works.append(Work(event, ordinal, model.now, replay_of=dead))
