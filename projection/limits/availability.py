"""What is closed now: work that may not be claimed although it is due, and since when another look makes sense.

Closed are paused namespaces, packs and routes, the routes of an exhausted limit, of a parked destination, and of one that has enough
waiting in this very process already. The claim leaves them out of its pre-selection as constants. What of them lies in its way is set
aside, into a queue class of its route: so that no claim ever walks over the backlog of what it may not take.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from projection.database.catalogue import execute, fetch
from projection.database.transactions import is_server_conflict, run_unit
from projection.limits import circuit_breaker, queue_classes, rate_limits, route_limits
from projection.limits.rate_limits import MICROSECOND
from projection.limits.route_limits import Terms
from projection.states import State

LOOKED_AT: Final = 200
"""Oldest due items of a class that are looked at; while all of them are closed, as many more."""
LOOKS: Final = 10
"""How often in one claim: it sets at most so many pages aside, the next claim goes on."""


@dataclass(frozen=True, slots=True)
class Closed:
    """One look at what is closed. Each mapping is from a name, id or key to when it opens (naive; None: nobody knows)."""

    namespaces: Mapping[str, datetime | None] = field(default_factory=dict)
    packs: Mapping[int, datetime | None] = field(default_factory=dict)
    routes: Mapping[int, datetime | None] = field(default_factory=dict)
    limits: Mapping[str, datetime | None] = field(default_factory=dict)
    """Exhausted ones, and (None) those of which as many run as may."""
    destinations: Mapping[str, datetime | None] = field(default_factory=dict)
    """Parked ones."""
    probes: Mapping[str, int] = field(default_factory=dict)
    """Destinations whose pause is over, with their row: open for one item."""
    busy: Collection[str] = ()
    """Destinations that this process has enough of."""

    @property
    def is_anything(self) -> bool:
        return bool(self.namespaces or self.packs or self.routes or self.limits or self.destinations or self.busy)

    def route_ids(self) -> list[int]:
        """The routes, as far as this process knows them, that are closed by themselves, by their limit or their destination."""
        known = route_limits.known() if self.limits or self.destinations or self.busy else ()
        return sorted({*self.routes, *(one.route_id for one in known if self._is_shut(one))})

    def is_closed(self, route_id: int) -> bool:
        """Whether all work of a route is closed."""
        terms = route_limits.find(route_id)
        if route_id in self.routes or terms is None:
            return route_id in self.routes
        return terms.namespace in self.namespaces or terms.pack_id in self.packs or self._is_shut(terms)

    def _is_shut(self, terms: Terms) -> bool:
        name = terms.destination
        return terms.limit_key in self.limits or name in self.destinations or name in self.busy

    def opens_at(self) -> list[datetime]:
        """The moments at which something opens, as far as anybody knows."""
        limits = [moment - rate_limits.OPENS for moment in self.limits.values() if moment is not None]
        others = [*self.namespaces.values(), *self.packs.values(), *self.routes.values(), *self.destinations.values()]
        return [*limits, *(moment for moment in others if moment is not None)]


def read(busy: Collection[str] = ()) -> Closed:
    """What is closed now. One statement."""
    kinds = ("namespace", "pack", "route", "limit", "full", "parked", "probe", "failing")
    found: dict[str, dict[str, tuple[datetime | None, int]]] = {kind: {} for kind in kinds}
    opens = rate_limits.OPENS // MICROSECOND
    for kind, name, until, number in fetch(
        "read_closed", opens=opens, failures=circuit_breaker.FAILURES, troubled=circuit_breaker.TROUBLED
    ):
        found[kind][name] = (until, number)
    circuit_breaker.hear([*found["parked"], *found["probe"], *found["failing"]])
    moments = {kind: {name: until for name, (until, _) in found[kind].items()} for kind in kinds}
    return Closed(
        namespaces=moments["namespace"],
        packs={int(id): until for id, until in moments["pack"].items()},
        routes={int(id): until for id, until in moments["route"].items()},
        limits=moments["limit"] | moments["full"],
        destinations=moments["parked"],
        probes={name: id for name, (_, id) in found["probe"].items()},
        busy=busy,
    )


def open_classes(ready: Sequence[tuple[State, str]], closed: Closed) -> list[tuple[State, str]]:
    """The classes with due work but those of closed routes. Learns routes that this process has not met."""
    aside = {name: queue_classes.route_of(name) for _, name in ready if queue_classes.is_aside(name)}
    route_limits.learn(aside.values())
    return [(state, name) for state, name in ready if name not in aside or not closed.is_closed(aside[name])]


def set_aside(ready: Sequence[tuple[State, str]], closed: Closed, known: set[str]) -> list[tuple[State, str]]:
    """Move closed work that lies ahead of open work to classes of its routes; the classes of `ready` that are clear now.

    `known` are the classes that this process knows; new ones join them. One or two statements for each class with due work, and more
    only while nothing but closed work is met: then the next claim goes on.
    """
    if not closed.is_anything:
        return list(ready)
    return [(state, name) for state, name in ready if queue_classes.is_aside(name) or _clear(state, name, closed, known)]


def _clear(state: State, queue_class: str, closed: Closed, known: set[str]) -> bool:
    """Whether the oldest due items of a class are not all closed any more."""
    for _ in range(LOOKS):
        rows = fetch("read_oldest_due", state=state.value, queue_class=queue_class, limit=LOOKED_AT)
        route_limits.learn(row[1] for row in rows)
        shut = [row[0] for row in rows if _is_closed_row(row, closed) and _has_room(queue_class, row[1], known)]
        if shut:
            aside = queue_classes.prefix(queue_class)
            move = partial(execute, "set_aside", prefix=aside, ids=tuple(sorted(shut)), state=state.value, queue_class=queue_class)
            run_unit("aside", move, retry_on=is_server_conflict, one_statement=True)
        if len(shut) < LOOKED_AT:
            return True
    return False


def _is_closed_row(row: tuple[int, int, int, str], closed: Closed) -> bool:
    _, route_id, pack_id, namespace = row
    return namespace in closed.namespaces or pack_id in closed.packs or closed.is_closed(route_id)


def _has_room(queue_class: str, route_id: int, known: set[str]) -> bool:
    name = queue_classes.aside(queue_class, route_id)
    if name not in known and sum(map(queue_classes.is_aside, known)) < queue_classes.MOST_ASIDE:
        known.add(name)
    return name in known
