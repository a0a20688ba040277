"""The values of the reference: routes, items, events, work. Numbers in comments are sections of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

WAITING, QUEUED, PROCESSING, RETRY = "waiting", "queued", "processing", "retry"
PROCESSED, SKIPPED, DEAD, CANCELLED = "processed", "skipped", "dead", "cancelled"
TERMINAL = (PROCESSED, SKIPPED, DEAD, CANCELLED)
LEASE = timedelta(seconds=60)
"""`waiting` is `pending` or `blocked` of a live item: which of the two is free (7), only what may be claimed is not."""


@dataclass(frozen=True)
class Route:
    """One published version, of one incarnation of the pack. Incarnations are numbered through all namespaces."""

    namespace: str
    key: str
    version: int
    pack: int
    kinds: tuple[str, ...]
    event_kind: str
    projection: bool
    companion: str
    attempts: int
    settle: timedelta = timedelta()
    give_up: timedelta | None = None
    target: str = ""


@dataclass(frozen=True)
class Item:
    """One delivered item; `lane` empty: it names none."""

    delivery: str
    kind: str
    source: str
    lane: str
    payload: str


@dataclass(frozen=True)
class Key:
    """What makes one projection: the route version with its incarnation (which fix kind and companion) and the source lane."""

    namespace: str
    route: str
    version: int
    pack: int
    lane: str


@dataclass(frozen=True, eq=False)
class Event:
    """An immutable fact, equal to itself alone. `number` is its place among all that were written; `ordinal` 0: from before ordinals."""

    number: int
    namespace: str
    ordinal: int
    created: datetime
    sequence: int
    """Its place in its receipt."""
    item: Item
    route: Route | None
    deadline: datetime | None = None
    """Its NextAttemptAt: when its work is due at the earliest, where it settles or an old binary may run it."""
    owned_by_event: bool = False
    """Written so that an old binary may run it (4, Rolling upgrade)."""
    routed_from: int | None = None
    replay_of: int | None = None

    @cached_property
    def key(self) -> Key | None:
        """None: unrouted, per event, or of a projection route but without a lane (docs/protocol.md#missing-lane)."""
        if self.route is None or not self.route.projection or not self.item.lane:
            return None
        return Key(self.namespace, self.route.key, self.route.version, self.route.pack, self.item.lane)

    @cached_property
    def lane(self) -> tuple[str, ...] | None:
        """The order domain of the event's work (docs/protocol.md#identity); a projection keeps to its source lane."""
        assert self.route is not None
        if self.route.target:
            return (self.namespace, "target", self.route.target)
        return (self.namespace, self.route.companion, self.item.lane) if self.item.lane else None


@dataclass(eq=False)
class Work:
    """A work item. `event` is the selected one, `first` the ordinal that gives its place in the lane and never moves."""

    event: Event
    first: int
    run_after: datetime
    state: str = WAITING
    active: bool = True
    """Holds the ProjectionActiveKey; always True while a per-event item is live, False for a queued successor and for history."""
    claimed: datetime | None = None
    """The newest claim."""
    first_claimed: datetime | None = None
    attempts: int = 0
    lease_ends: datetime | None = None
    workers_lost: int = 0
    """Above 0 it runs apart: 1 is a suspicion, what comes on top were workers lost over it alone."""
    replay_of: Work | None = None
    discarded: bool = False
    ended: datetime | None = None
    named_by: Event | None = None
    """What it selected at its creation; None for the first generation ever of its key."""

    @property
    def key(self) -> Key | None:
        return self.event.key

    @property
    def route(self) -> Route:
        assert self.event.route is not None
        return self.event.route

    @property
    def is_live(self) -> bool:
        return self.state in (WAITING, PROCESSING, RETRY)

    @property
    def is_open(self) -> bool:
        return self.state not in TERMINAL

    @property
    def scope(self) -> tuple[str, str, str]:
        return self.event.namespace, self.route.event_kind, self.event.item.lane

    @property
    def root(self) -> Work:
        return self if self.replay_of is None else self.replay_of.root


@dataclass
class Counts:
    """What a receipt is acknowledged with."""

    items: int = 0
    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
