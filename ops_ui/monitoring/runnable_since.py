"""Since when could work be taken? What closes its route (a pause, a limit, a parked destination) moves that moment, and tells when it was.

For those who judge whether work moves on (`progress.py`). The claim asks anew each time (`projection.limits.availability`); here also
counts what has just ended, so that a backlog is not called old at the moment at which it may be worked off.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from projection.database.catalogue import Sender
from projection.database.clock import from_db
from projection.facts import flow_name
from projection.limits import circuit_breaker, destinations, rate_limits

REMEMBERED_SECONDS: Final = 86_400
"""How long a pause that somebody ended counts; by then its backlog is old by any limit."""

_sql: Final = Sender(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class RouteOfWork:
    """What may close a route version. Never changes."""

    id: int
    namespace: str
    pack_id: int
    pack_name: str
    key: str
    flow: str
    connection: str
    limit_key: str

    @property
    def gates(self) -> Iterator[tuple[str, str]]:
        """(kind, key) of everything that closes it, as `read_openings` names them."""
        yield from (("namespace", self.namespace), ("pack", str(self.pack_id)), ("route", str(self.id)))
        yield from (("namespace.resume", self.namespace), ("pack.resume", f"{self.namespace}/{self.pack_name}"))
        yield from (("route.resume", f"{self.namespace}/{self.key}"), ("limit", self.limit_key), ("full", self.limit_key))
        yield "destination", destinations.name_of(self.flow, self.namespace, self.connection)


_known: Final[dict[int, RouteOfWork]] = {}


@dataclass(frozen=True, slots=True)
class Openings:
    """When what closes, or closed, routes ends or ended: (kind, key) → moments, None where nobody knows."""

    moments: Mapping[tuple[str, str], Collection[datetime | None]]

    def since(self, route: RouteOfWork | None, due: datetime, now: datetime) -> datetime | None:
        """Since when an item of the route that is due since then could be taken; None: it cannot be now. No route: nothing closes it."""
        ends = [end for gate in route.gates for end in self.moments.get(gate, ())] if route else []
        passed = [end for end in ends if end is not None and end <= now]
        return max([due, *passed]) if len(passed) == len(ends) else None


def read() -> Openings:
    """One statement."""
    found: defaultdict[tuple[str, str], list[datetime | None]] = defaultdict(list)
    opens = rate_limits.OPENS // rate_limits.MICROSECOND
    for kind, key, end in _sql.fetch("read_openings", opens=opens, troubled=circuit_breaker.TROUBLED, seconds=REMEMBERED_SECONDS):
        found[kind, key].append(from_db(end))
    return Openings(found)


def routes(ids: Collection[int]) -> Mapping[int, RouteOfWork]:
    """The routes with these ids. One statement where there are some that this process has not met."""
    unknown = set(ids) - _known.keys()
    if unknown:
        for id, namespace, pack_id, pack_name, key, pack, flow, connection, limit in _sql.fetch(
            "read_routes_of_work", ids=tuple(sorted(unknown))
        ):
            limit_key = rate_limits.key_of(namespace, json.loads(limit)["name"]) if limit else ""
            _known[id] = RouteOfWork(id, namespace, pack_id, pack_name, key, flow_name(pack, flow), connection, limit_key)
    return _known


def forget() -> None:
    """What this process remembers about a database (tests)."""
    _known.clear()
