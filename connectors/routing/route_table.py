"""The routes in force: current versions of every pack of a namespace, read once per batch and checked by the admission's fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from connectors.models import Pack as PackRow
from connectors.models import Route
from connectors.pack import Pack
from connectors.registry import installed_packs
from connectors.states import PackState
from projection.admission.admit import AdmissionLock, StaleIncarnation, lock_admission
from projection.database.catalogue import Sender
from projection.facts import RouteFacts

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class PackFacts:
    """An installed incarnation."""

    id: int
    name: str
    incarnation: str
    is_removed: bool = False
    """Nothing of the name is installed: what was received before still is routed."""


@dataclass(frozen=True, slots=True)
class RouteBook:
    """What a batch is routed by."""

    namespace: str
    packs: dict[int, PackFacts]
    """Pack row id → the incarnation now in force: receipts of a replaced row are routed by its successor of the same name."""
    routes: dict[int, Sequence[RouteFacts]] = field(default_factory=dict)
    """Pack row id (in force) → current routes, by key."""
    route_keys: dict[str, Sequence[str]] = field(default_factory=dict)
    """Pack name → every route key it ever had, also retired ones."""

    @property
    def route_ids(self) -> set[int]:
        """The versions that it routes by; compared with those in force under the namespace lock."""
        return {route.id for routes in self.routes.values() for route in routes}

    def matching(self, pack_id: int, provider_kind: str) -> list[RouteFacts]:
        """The current routes of the pack that take this kind."""
        return [route for route in self.routes.get(pack_id, ()) if takes(route, provider_kind)]

    def masks(self, pack_id: int) -> tuple[str, ...]:
        """What the current routes of the pack mask."""
        return tuple(dict.fromkeys(mask for route in self.routes.get(pack_id, ()) for mask in route.masks))

    def pack_object(self, pack_id: int) -> Pack:
        """The code of the pack. Raises installed_packs.PackNotLoaded when no module of this process has it."""
        return installed_packs.of(pack_id)


def takes(route: RouteFacts, provider_kind: str) -> bool:
    """Whether the route lists the kind: exactly, as `*`, or by a prefix such as `contact.*`, `orders/*` or `jira:*`."""
    return any(
        pattern in ("*", provider_kind) or (pattern.endswith("*") and provider_kind.startswith(pattern[:-1]))
        for pattern in route.provider_kinds
    )


def load(namespace: str) -> RouteBook:
    """The book of a namespace. Two queries, of configuration size."""
    rows = list(PackRow.objects.filter(namespace=namespace).order_by("id").values_list("id", "name", "incarnation", "state"))
    in_force: dict[str, PackFacts] = {}
    for pack_id, name, incarnation, state in rows:
        if state != PackState.REMOVED or name not in in_force:
            in_force[name] = PackFacts(pack_id, name, incarnation, state == PackState.REMOVED)
    routes: dict[int, list[RouteFacts]] = {}
    keys: dict[str, set[str]] = {}
    for pack_id, pack_name, key, is_current, snapshot in (
        Route.objects.filter(namespace=namespace)
        .order_by("route_key", "version")
        .values_list("pack_id", "pack_name", "route_key", "is_current", "snapshot")
    ):
        keys.setdefault(pack_name, set()).add(key)
        if is_current:
            routes.setdefault(pack_id, []).append(RouteFacts.from_snapshot(snapshot))
    return RouteBook(
        namespace,
        {pack_id: in_force[name] for pack_id, name, _, _ in rows},
        dict(routes),
        {name: sorted(values) for name, values in keys.items()},
    )


def lock(book: RouteBook) -> AdmissionLock:
    """The admission's lock with its fence: what is routed by `book` is admitted only while that is in force.

    Raises StaleIncarnation after an upgrade, or when a version was published or retired; UnknownNamespace. Three statements.
    """
    found = lock_admission(book.namespace, {pack.id: pack.incarnation for pack in book.packs.values()})
    # An upgrade leaves the old row's incarnation as it was and makes a new row.
    replaced = any(pack.id in found.removed and not pack.is_removed for pack in book.packs.values())
    if replaced or {row[0] for row in _sql.fetch("read_current_route_ids", namespace=book.namespace)} != book.route_ids:
        raise StaleIncarnation(f"the packs or routes of namespace {book.namespace!r} changed since they were read")
    return found
