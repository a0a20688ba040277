"""What the claim must know of a route before it takes its work: whose it is, what it calls, what limits it.

A process learns it from the route's row when it first meets the route, and keeps it: route versions never change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from projection.database.catalogue import fetch
from projection.facts import RateLimit, flow_name
from projection.limits import destinations, rate_limits
from projection.limits.rate_limits import Declared


@dataclass(frozen=True, slots=True)
class Terms:
    """Of one route version. `limit_key` None: nothing limits it. `spacing`: seconds between two starts that its limit allows.

    `is_counted`: also how many run at once is limited.
    """

    route_id: int
    namespace: str
    pack_id: int
    flow_name: str
    connection: str
    limit_key: str | None
    spacing: float = 0.0
    is_counted: bool = False

    @property
    def destination(self) -> str:
        """Asked of the flows of this process, as its attempts are."""
        return destinations.name_of(self.flow_name, self.namespace, self.connection)


_known: Final[dict[int, Terms]] = {}


def known() -> list[Terms]:
    """The routes that this process has met."""
    return list(_known.values())


def find(route_id: int) -> Terms | None:
    """None: not met yet, or its row is gone."""
    return _known.get(route_id)


def learn(route_ids: Iterable[int]) -> bool:
    """Read the routes that are not known yet, and see to the rows of their limits; whether there was anything to learn.

    No statement when all are known; one to three otherwise.
    """
    unknown = set(route_ids) - _known.keys()
    if not unknown:
        return False
    rows = fetch("read_route_terms", ids=tuple(sorted(unknown)))
    declared: dict[int, Declared] = {}
    for id, namespace, _, _, _, _, limit, created in rows:
        if limit:
            declared[id] = Declared(namespace, RateLimit.of(json.loads(limit)), created)
    rate_limits.declare(declared.values())
    for id, namespace, pack_id, companion_pack, companion_flow, connection, _, _ in rows:
        terms = Terms(id, namespace, pack_id, flow_name(companion_pack, companion_flow), connection, None)
        if (limited := declared.get(id)) is not None:
            limit = limited.limit
            spacing = limit.per / limit.rate if limit.rate else 0.0
            terms = replace(terms, limit_key=limited.key, spacing=spacing, is_counted=limit.concurrency is not None)
        _known[id] = terms
    return bool(rows)


def is_counted(route_id: int) -> bool:
    """Whether the end of an attempt of this route lets another one begin, as far as this process knows."""
    terms = _known.get(route_id)
    return terms is not None and terms.is_counted


def forget() -> None:
    """What this process remembers about a database (tests, another database)."""
    _known.clear()
    rate_limits.forget()
