"""Retarget: replay dead work under the route version and pack incarnation in force now (protocol 6).

The lineage is kept by ReplayOfWorkId; the projection is another one. The execution class never changes: replay refuses that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from connectors import route_book
from connectors.models import Route
from projection.admit import StaleIncarnation
from projection.models import WorkItem
from projection.replay import Note, Refused, Result, Target, replay_many

ROUNDS = 3
"""A pack upgraded while a bulk is prepared is rare; three in a row are an operator's mistake."""


def replay_retargeted(work_ids: Sequence[str], *, actor: str, reason: str, note: Note | None = None) -> list[Result]:
    """As `replay_many`, each item under the current version of its route key.

    Refused besides: `no_current_route` where the key is retired. Raises StaleIncarnation when packs are upgraded all the while.
    """
    for _ in range(ROUNDS):
        targets = current_targets(work_ids)
        possible = [work_id for work_id in work_ids if targets.get(work_id) is not None]
        act = partial(replay_many, actor=actor, reason=reason, targets=_present(targets), note=note)
        try:
            known = dict(zip(possible, act(possible), strict=True))
        except StaleIncarnation:
            continue
        return [known.get(work_id) or without_target(work_id, targets) for work_id in work_ids]
    raise StaleIncarnation(f"packs were upgraded {ROUNDS} times while {len(work_ids)} replays were prepared; try again")


def current_targets(work_ids: Sequence[str]) -> dict[str, Target | None]:
    """WorkId → the current version of its route key with the incarnation in force; None = that key is retired. A few queries."""
    possible = [work_id for work_id in work_ids if work_id.isascii()]  # no WorkId is anything else, and the column takes none
    items = list(WorkItem.objects.filter(work_id__in=possible).values_list("work_id", "namespace", "route_id"))
    keys = dict(Route.objects.filter(id__in={route for _, _, route in items}).values_list("id", "route_key"))
    books = {namespace: route_book.load(namespace) for namespace in {namespace for _, namespace, _ in items}}
    current = {
        (namespace, route.key): Target(route, book.packs[pack_id].incarnation)
        for namespace, book in books.items()
        for pack_id, routes in book.routes.items()
        for route in routes
    }
    return {work_id: current.get((namespace, keys.get(route_id, ""))) for work_id, namespace, route_id in items}


def _present(targets: dict[str, Target | None]) -> dict[str, Target]:
    return {work_id: target for work_id, target in targets.items() if target is not None}


def without_target(work_id: str, targets: dict[str, Target | None]) -> Refused:
    """Why an item has no target: its route is retired, or there is no such item."""
    if work_id in targets:
        return Refused(
            work_id, "no_current_route", f"the route of {work_id} is retired; publish it again, or replay without retarget"
        )
    return Refused(work_id, "not_found", f"there is no work item {work_id}")
