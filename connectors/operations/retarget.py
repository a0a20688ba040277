"""Retarget: replay dead work under the route version and pack incarnation in force now (docs/protocol.md#retarget).

The lineage is kept by ReplayOfWorkId; the projection is another one. The execution class never changes: replay refuses that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from connectors.models import Route
from connectors.routing import route_table
from connectors.routing.reading import UnfitItem, names_for
from projection.admission.admit import StaleIncarnation
from projection.facts import SourceLane
from projection.models import Event, WorkItem
from projection.refusals import Refused
from projection.replay.decision import Result, Target
from projection.replay.replay import Note, replay_many

ROUNDS = 3
"""A pack upgraded while a bulk is prepared is rare; three in a row are an operator's mistake."""


def replay_retargeted(work_ids: Sequence[str], *, actor: str, reason: str, note: Note | None = None) -> list[Result]:
    """As `replay_many`, each item under the current version of its route key.

    Refused besides: `no_current_route` where the key is retired, `unfit`, `source_change`. Raises StaleIncarnation when packs are
    upgraded all the while.
    """
    for _ in range(ROUNDS):
        targets = current_targets(work_ids)
        aims = present(targets)
        possible = [work_id for work_id in work_ids if work_id in aims]
        act = partial(replay_many, actor=actor, reason=reason, targets=aims, note=note)
        try:
            known = dict(zip(possible, act(possible), strict=True))
        except StaleIncarnation:
            continue
        return [known.get(work_id) or without_target(work_id, targets) for work_id in work_ids]
    raise StaleIncarnation(
        f"packs were upgraded {ROUNDS} times while {len(work_ids)} replays were prepared; try again when no upgrade is running"
    )


Targets = dict[str, Target | Refused | None]


def current_targets(work_ids: Sequence[str]) -> Targets:
    """WorkId → the current version of its route key with the incarnation in force, and the lane that it gives the item's event.

    None: that key is retired. Refused: the event cannot be taken by it (`unfit`), or would be another source's (`source_change`).
    A few queries.
    """
    possible = [work_id for work_id in work_ids if work_id.isascii()]  # no WorkId is anything else, and the column takes none
    items = list(WorkItem.objects.filter(work_id__in=possible).values_list("work_id", "namespace", "route_id", "event_id"))
    keys = dict(Route.objects.filter(id__in={route for _, _, route, _ in items}).values_list("id", "route_key"))
    books = {namespace: route_table.load(namespace) for namespace in {namespace for _, namespace, _, _ in items}}
    names = ("source_type", "source_id", "provider_kind", "account", "source_lane", "lane_cuts")
    events = {row[0]: row[1:] for row in Event.objects.filter(id__in={item[3] for item in items}).values_list("id", *names)}
    current = {
        (namespace, route.key): Target(route, book.packs[pack_id].incarnation)
        for namespace, book in books.items()
        for pack_id, routes in book.routes.items()
        for route in routes
    }
    found = {work_id: (current.get((namespace, keys.get(route, ""))), event) for work_id, namespace, route, event in items}
    return {work_id: _fitted(work_id, target, events.get(event)) for work_id, (target, event) in found.items()}


def _fitted(work_id: str, target: Target | None, event: tuple[str, ...] | None) -> Target | Refused | None:
    """The target as it takes the event: (source type, id, provider kind, account, source lane, its cuts); None = not
    retained, replay says so.
    """
    if target is None or event is None:
        return target
    source_type, source_id, kind, account, text, cuts = event
    lane = SourceLane.of(account, text, cuts)
    try:
        named = names_for(target.route, source_type, source_id, kind, lane)
    except UnfitItem as error:
        return Refused(work_id, "unfit", f"route {target.route.key} v{target.route.version}: {error}")
    if (named.source_id, named.lane) != (source_id, lane):
        route = f"route {target.route.key} v{target.route.version}"
        reason = f"{route} ignores the case of ids, so the source would change; replay without --retarget"
        return Refused(work_id, "source_change", reason)
    return replace(target, target_lane=named.target_lane)


def present(targets: Targets) -> dict[str, Target]:
    """Those that are targets."""
    return {work_id: target for work_id, target in targets.items() if isinstance(target, Target)}


def without_target(work_id: str, targets: Targets) -> Refused:
    """Why an item has no target: its route is retired, or cannot take it, or there is no such item."""
    if work_id not in targets:
        return Refused(work_id, "not_found", f"there is no work item {work_id}")
    refused = targets[work_id]
    if isinstance(refused, Refused):
        return refused
    return Refused(
        work_id, "no_current_route", f"the route of {work_id} is retired; publish it again, or replay without --retarget"
    )
