"""What may block a route: whose it is, what it calls, what limits it.

A process learns it from the route's row when it first meets the route, and keeps it: route versions never change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from projection.database.catalogue import fetch
from projection.facts import RateLimit, flow_name
from projection.limits import destinations, rate_limits
from projection.limits.rate_limits import Declared

Gate = tuple[str, str]
"""What may block routes: its kind (`namespace`, `pack`, `route`, `limit`, `full`, `destination`), and its name, id or key."""


def scopes_of(namespace: str, pack_id: int, route_id: int) -> tuple[Gate, ...]:
    """What an operator may pause, the outermost first."""
    return ("namespace", namespace), ("pack", str(pack_id)), ("route", str(route_id))


@dataclass(frozen=True, slots=True)
class RouteLimits:
    """Of one route version. `declared` None: nothing limits it."""

    route_id: int
    namespace: str
    pack_id: int
    pack_name: str
    key: str
    flow_name: str
    connection: str
    declared: Declared | None = None
    limit_key: str | None = None

    @property
    def spacing(self) -> float:
        """Seconds between two starts that its limit allows."""
        limit = self.declared.limit if self.declared else None
        return limit.per / limit.rate if limit and limit.rate else 0.0

    @property
    def is_counted(self) -> bool:
        """Whether also how many run at once is limited."""
        return self.declared is not None and self.declared.limit.concurrency is not None

    @property
    def scopes(self) -> tuple[Gate, ...]:
        return scopes_of(self.namespace, self.pack_id, self.route_id)

    @property
    def shared(self) -> tuple[Gate, ...]:
        """Its gates that other routes may share without having a pack or namespace in common."""
        limit = self.limit_key or ""
        return ("limit", limit), ("full", limit), ("destination", self.destination)

    @property
    def gates(self) -> tuple[Gate, ...]:
        return *self.scopes, *self.shared

    @property
    def resumes(self) -> tuple[Gate, ...]:
        """What the audit log says where somebody ended a pause of it: action and target."""
        scope = self.namespace
        return ("namespace.resume", scope), ("pack.resume", f"{scope}/{self.pack_name}"), ("route.resume", f"{scope}/{self.key}")

    @property
    def destination(self) -> str:
        """Asked of the flows of this process, as its attempts are."""
        return destinations.name_of(self.flow_name, self.namespace, self.connection)


_known: Final[dict[int, RouteLimits | None]] = {}
"""None: its row is gone. It never comes back."""


def known() -> list[RouteLimits]:
    """The routes that this process has met."""
    return [terms for terms in _known.values() if terms is not None]


def find(route_id: int) -> RouteLimits | None:
    """None: not met yet, or its row is gone."""
    return _known.get(route_id)


def learn(route_ids: Iterable[int]) -> bool:
    """Read the routes that are not known yet; whether there was anything to learn. One statement, none when all are known."""
    unknown = set(route_ids) - _known.keys()
    if not unknown:
        return False
    rows = fetch("read_route_terms", ids=tuple(sorted(unknown)))
    _known.update(dict.fromkeys(unknown))
    for id, namespace, pack_id, pack_name, key, companion_pack, companion_flow, connection, limit, created in rows:
        flow = flow_name(companion_pack, companion_flow)
        declared = Declared(namespace, RateLimit.of(json.loads(limit)), created) if limit else None
        limit_key = declared.key if declared else None
        _known[id] = RouteLimits(id, namespace, pack_id, pack_name, key, flow, connection, declared, limit_key)
    return bool(rows)


def declare(route_ids: Iterable[int]) -> None:
    """See to it that the limits of these routes have rows, before work of them is taken. As many statements as `rate_limits.declare`."""
    terms = (find(route_id) for route_id in set(route_ids))
    rate_limits.declare(one.declared for one in terms if one is not None and one.declared is not None)


def is_counted(route_id: int) -> bool:
    """Whether the end of an attempt of this route lets another one begin, as far as this process knows."""
    terms = _known.get(route_id)
    return terms is not None and terms.is_counted


def forget() -> None:
    """What this process remembers about a database (tests, another database)."""
    _known.clear()
    rate_limits.forget()
