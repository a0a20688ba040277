"""Availability: which routes may not start now, why, and since when they may again. The only reader of it: claim, health and "why" ask.

Blocked are paused namespaces, packs and routes, the routes of an exhausted limit, of a parked destination, and of one that has enough
waiting in this very process already. The claim leaves them out of its pre-selection as constants. What of them lies in its way is set
aside, into a queue class of its route: so that no claim ever walks over the backlog of what it may not take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from projection.database.catalogue import NO_ID, NO_NAME, execute, fetch
from projection.database.clock import from_db
from projection.database.transactions import is_server_conflict, run_unit
from projection.limits import circuit_breaker, queue_classes, rate_limits, route_limits
from projection.limits.rate_limits import MICROSECOND
from projection.limits.route_limits import Gate, RouteLimits
from projection.states import State

LOOKED_AT: Final = 200
"""Oldest due items of a class that are looked at; while all of them are blocked, as many more."""
LOOKS: Final = 10
"""How often in one claim: it sets at most so many pages aside, the next claim goes on."""
REMEMBERED: Final = timedelta(days=1)
"""How long health counts that something blocked a route; by then its backlog is old by any limit."""


@dataclass(frozen=True, slots=True)
class Availability:
    """One look at what blocks routes. Times are naive."""

    blocked: Mapping[Gate, datetime | None] = field(default_factory=dict)
    """Each gate that is shut → until when (None: nobody knows)."""
    ended: Mapping[Gate, datetime] = field(default_factory=dict)
    """Each gate that opened → when, as far back as was asked for."""
    probes: Mapping[str, int] = field(default_factory=dict)
    """Destinations whose pause is over, with their row: open for one item."""
    busy: Collection[str] = ()
    """Destinations that this process has enough of."""

    @property
    def is_limited(self) -> bool:
        """Whether anything is blocked."""
        return bool(self.blocked or self.busy)

    def names(self, kind: str) -> list[str]:
        """What of one kind is blocked."""
        return [name for shut, name in self.blocked if shut == kind]

    def pack_ids(self) -> list[int]:
        """The packs that are paused."""
        return list(map(int, self.names("pack")))

    def route_ids(self) -> list[int]:
        """The routes, as far as this process knows them, that are blocked by themselves, by their limit or their destination."""
        known = route_limits.known() if self.is_limited else ()
        return sorted({*map(int, self.names("route")), *(one.route_id for one in known if self._is_shut(one))})

    def is_blocked(self, route_id: int) -> bool:
        """Whether all work of a route is blocked."""
        terms = route_limits.find(route_id)
        if terms is None:
            return ("route", str(route_id)) in self.blocked
        return self._is_shut(terms) or not self.blocked.keys().isdisjoint(terms.scopes)

    def _is_shut(self, terms: RouteLimits) -> bool:
        return terms.destination in self.busy or not self.blocked.keys().isdisjoint(terms.shared)

    def opens_at(self) -> list[datetime]:
        """The moments at which something opens, as far as anybody knows."""
        return [until for until in self.blocked.values() if until is not None]

    def runnable_since(self, route_id: int, due: datetime) -> datetime | None:
        """Since when work of a route that is due since then could be taken; None: it cannot be now. Nothing blocks an unknown route."""
        terms = route_limits.find(route_id)
        if terms is None:
            return due
        if self.is_blocked(route_id):
            return None
        return max([due, *(self.ended[gate] for gate in (*terms.gates, *terms.resumes) if gate in self.ended)])


def read(busy: Collection[str] = (), *, remembered: timedelta = timedelta()) -> Availability:
    """What is blocked now, and what was within the time `remembered`. One statement; two when something is to be remembered."""
    rows = fetch(
        "read_blocked",
        opens=rate_limits.OPENS // MICROSECOND,
        remembered=remembered // MICROSECOND,
        failures=circuit_breaker.FAILURES,
        troubled=circuit_breaker.TROUBLED,
    )
    blocked: dict[Gate, datetime | None] = {}
    ended: dict[Gate, datetime] = {}
    probes: dict[str, int] = {}
    for kind, name, until, now, probe in rows:
        if kind != "failing" and (until is None or until > now):
            blocked[kind, name] = until
            continue
        if until is not None:
            ended[kind, name] = until
        if probe:
            probes[name] = probe
    circuit_breaker.hear(name for kind, name, *_ in rows if kind in ("destination", "failing"))
    if remembered:
        ended.update({(kind, name): at for kind, name, at in fetch("read_resumed", remembered=remembered // MICROSECOND)})
    return Availability(blocked, ended, probes, busy)


@dataclass(frozen=True, slots=True)
class Block:
    """Why a gate is shut. Times are aware.

    `name`: of the namespace, pack, route, destination or limit; `number`: of a limit, how many start in `seconds`, or run at once.
    """

    kind: str
    name: str
    until: datetime | None = None
    since: datetime | None = None
    by: str | None = None
    reason: str | None = None
    number: int = 0
    seconds: float = 0.0


def blocks(gates: Iterable[Gate]) -> dict[Gate, Block]:
    """Why each of these shut gates is; those that opened meanwhile are left out. One statement by unique keys; none for no gates."""
    asked = {(kind, circuit_breaker.key_of(name) if kind == "destination" else name): (kind, name) for kind, name in gates}
    if not asked:
        return {}

    def keys(kind: str) -> tuple[str, ...]:
        return tuple(key for of, key in asked if of == kind)

    rows = fetch(
        "read_blocks",
        namespaces=keys("namespace") or NO_NAME,
        packs=tuple(map(int, keys("pack"))) or NO_ID,
        routes=tuple(map(int, keys("route"))) or NO_ID,
        limits=keys("limit") or NO_NAME,
        fulls=keys("full") or NO_NAME,
        destinations=keys("destination") or NO_NAME,
    )
    return {
        asked[kind, key]: Block(kind, name, from_db(until), from_db(since), by, reason, number, per / 1_000_000)
        for kind, key, name, until, since, by, reason, number, per in rows
    }


def open_classes(ready: Sequence[tuple[State, str]], availability: Availability) -> list[tuple[State, str]]:
    """The classes with due work but those of blocked routes. Learns routes that this process has not met."""
    aside = {name: queue_classes.route_of(name) for _, name in ready if queue_classes.is_aside(name)}
    route_limits.learn(aside.values())
    return [(state, name) for state, name in ready if name not in aside or not availability.is_blocked(aside[name])]


def set_aside(ready: Sequence[tuple[State, str]], availability: Availability, known: set[str]) -> list[tuple[State, str]]:
    """Move blocked work that lies ahead of open work to classes of its routes; the classes of `ready` that are clear now.

    `known` are the classes that this process knows; new ones join them. One or two statements for each class with due work, and more
    only while nothing but blocked work is met: then the next claim goes on.
    """
    if not availability.is_limited:
        return list(ready)
    return [(state, name) for state, name in ready if queue_classes.is_aside(name) or _clear(state, name, availability, known)]


def _clear(state: State, queue_class: str, availability: Availability, known: set[str]) -> bool:
    """Whether the oldest due items of a class are not all blocked any more."""
    for _ in range(LOOKS):
        rows = fetch("read_oldest_due", state=state.value, queue_class=queue_class, limit=LOOKED_AT)
        route_limits.learn(row[1] for row in rows)
        shut = [row[0] for row in rows if _is_blocked_row(row, availability) and _has_room(queue_class, row[1], known)]
        if shut:
            aside = queue_classes.prefix(queue_class)
            move = partial(execute, "set_aside", prefix=aside, ids=tuple(sorted(shut)), state=state.value, queue_class=queue_class)
            run_unit("aside", move, retry_on=is_server_conflict, one_statement=True)
        if len(shut) < LOOKED_AT:
            return True
    return False


def _is_blocked_row(row: tuple[int, int, int, str], availability: Availability) -> bool:
    _, route_id, pack_id, namespace = row
    gates = route_limits.scopes_of(namespace, pack_id, route_id)
    return not availability.blocked.keys().isdisjoint(gates) or availability.is_blocked(route_id)


def _has_room(queue_class: str, route_id: int, known: set[str]) -> bool:
    name = queue_classes.aside(queue_class, route_id)
    if name not in known and sum(map(queue_classes.is_aside, known)) < queue_classes.MOST_ASIDE:
        known.add(name)
    return name in known
