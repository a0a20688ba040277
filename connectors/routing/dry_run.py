"""What a route would take of the events that are stored: a bounded look at the newest, nothing is written.

`read` looks (one index range of one namespace, two small queries beside it), `against` decides, as a pure function of what was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from connectors.configuration import routes
from connectors.models import Pack
from connectors.routing.reading import UnfitItem, names_for
from connectors.routing.route_table import takes
from projection.facts import RouteFacts, SourceLane
from projection.models import Event

LOOKED_AT: Final = 10_000
"""Newest events of the namespace that are read, without their payloads; those of other packs are left out of what is said."""
LANES_SHOWN: Final = 5
SETTLES: Final = (0.0, 1.0, 5.0, 15.0, 60.0, 300.0)
"""Settling times, in seconds, that the estimate compares beside the route's own."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One delivered item of the pack, once, however many routes took it. `at`: when it was admitted, seconds."""

    kind: str
    source_type: str
    source_id: str
    lane: SourceLane
    at: float
    routes: frozenset[int]
    """Rows of the route versions that took it; empty: unrouted."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was looked at: `facts` of the pack among the newest `events` of its namespace, between `first` and `last`."""

    facts: Sequence[Fact] = ()
    events: int = 0
    is_all: bool = True
    """There are no older ones."""
    first: datetime | None = None
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class KindRow:
    """A provider kind among the facts: how many, whether the route takes it, whether its current version does, and who else."""

    kind: str
    facts: int
    takes: bool
    took: bool
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a settling time of so many seconds would have made of the arrivals: fewer executions, for a wait that is added."""

    settle: float
    events: int
    executions: int
    mean_delay: float
    """Over all events, seconds: the first of a burst waits the whole settling time, later ones what is left of it."""

    @property
    def longest_delay(self) -> float:
        """Seconds, of any event."""
        return self.settle if self.events else 0.0

    @property
    def saved(self) -> float:
        """Share of the executions that one for each event would have taken, 0 to 1."""
        return 1 - self.executions / self.events if self.events else 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What the route would have taken. `lanes` are the busiest; `unfit` is the first reason why a fact cannot be routed."""

    looked: Looked
    kinds: tuple[KindRow, ...] = ()
    matched: int = 0
    sources: int = 0
    unrouted: int = 0
    """Of those matched, facts that no route took: once it is published, they are routed too."""
    lanes: tuple[tuple[str, int], ...] = ()
    lanes_in_all: int = 0
    without_lane: int = 0
    unfit: int = 0
    unfit_reason: str = ""
    estimates: tuple[Estimate, ...] = field(default_factory=tuple)


def estimate(sources: Iterable[Sequence[float]], settle: float) -> Estimate:
    """`sources`: for each source record the arrival times of its events, in seconds, in any order. `settle` 0: each runs at once.

    A burst opens with an event and takes every later one of its source before the deadline, which the first one sets
    (docs/protocol.md#settle). Executions that coalesce further because one runs, waits or is paused are not counted: the truth is at
    most this many.
    """
    events = executions = 0
    waited = 0.0
    for arrivals in sources:
        deadline = float("-inf")
        for at in sorted(arrivals):
            if settle <= 0 or at >= deadline:
                deadline = at + max(settle, 0.0)
                executions += 1
            waited += deadline - at
            events += 1
    return Estimate(settle, events, executions, waited / events if events else 0.0)


def read(namespace: str, pack_name: str) -> Looked:
    """The facts of a pack among the newest events. Two queries; index ix_event_ordinal, at most LOOKED_AT rows of it."""
    packs = {row_id for row_id, name in Pack.objects.filter(namespace=namespace).values_list("id", "name") if name == pack_name}
    rows = list(
        Event.objects.filter(namespace=namespace)
        .order_by("-enqueue_ordinal")
        .values_list(
            "pack_id",
            "delivery_id",
            "route_id",
            "provider_kind",
            "source_type",
            "source_id",
            "account",
            "source_lane",
            "lane_cuts",
            "created_date",
            "replay_of_event_id",
        )[:LOOKED_AT]
    )
    seen: dict[tuple[str, str], Fact] = {}
    moments: list[datetime] = []
    for pack_id, delivery_id, route_id, kind, source_type, source_id, account, text, cuts, created, replayed in rows:
        if pack_id not in packs or replayed is not None:
            continue
        moments.append(created)
        taken = frozenset((route_id,) if route_id is not None else ())
        known = seen.get((account, delivery_id))
        if known is not None:  # a copy for another route: the fact came with the first of them
            taken |= known.routes
        lane = SourceLane.of(account, text, cuts)
        seen[account, delivery_id] = Fact(kind, source_type, source_id, lane, created.timestamp(), taken)
    return Looked(tuple(seen.values()), len(rows), len(rows) < LOOKED_AT, min(moments, default=None), max(moments, default=None))


def against(route: RouteFacts, current: Sequence[RouteFacts], looked: Looked) -> Trial:
    """The trial of `route` (without a row yet) beside the routes that are current."""
    before = next((one for one in current if one.key == route.key), None)
    others = [one for one in current if one.key != route.key and one.pack_id == route.pack_id]
    counted = Counter(fact.kind for fact in looked.facts)
    kinds = tuple(
        KindRow(
            kind,
            number,
            takes(route, kind),
            before is not None and takes(before, kind),
            tuple(one.key for one in others if takes(one, kind)),
        )
        for kind, number in counted.most_common()
    )
    return _matched(route, looked, kinds)


def _matched(route: RouteFacts, looked: Looked, kinds: tuple[KindRow, ...]) -> Trial:
    sources: set[tuple[str, str, str]] = set()
    bursts: dict[SourceLane, list[float]] = {}
    matched = 0
    lanes: Counter[SourceLane | str] = Counter()
    unrouted = unfit = 0
    reason = ""
    taken = {row.kind for row in kinds if row.takes}
    for fact in looked.facts:
        if fact.kind not in taken:
            continue
        try:
            names = names_for(route, fact.source_type, fact.source_id, fact.kind, fact.lane)
        except UnfitItem as error:
            unfit += 1
            reason = reason or str(error)
            continue
        unrouted += not fact.routes
        matched += 1
        sources.add((fact.lane.account, fact.source_type, names.source_id))
        if names.lane.parts:
            bursts.setdefault(names.lane, []).append(fact.at)
        lanes[names.target_lane or (names.lane if names.lane.parts else "")] += 1
    without = lanes.pop("", 0)
    settles = sorted({*SETTLES, route.settle_seconds}) if route.is_projection else ()
    return Trial(
        looked,
        kinds,
        matched,
        len(sources),
        unrouted,
        tuple((_lane_name(lane), number) for lane, number in lanes.most_common(LANES_SHOWN)),
        len(lanes),
        without,
        unfit,
        reason,
        tuple(estimate(bursts.values(), settle) for settle in settles),
    )


def _lane_name(lane: SourceLane | str) -> str:
    if isinstance(lane, str):
        return lane
    return f"{lane.text} of {lane.account}" if lane.account else lane.text


def try_route(namespace: str, draft: routes.RouteDraft, pack: Pack) -> Trial:
    """Look, and decide for the draft of a route of `pack`."""
    return against(routes.facts_of(draft, pack), routes.all_current(namespace), read(namespace, draft.pack_name))
