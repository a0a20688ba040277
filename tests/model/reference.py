"""The protocol as a plain program: what must be true after each step, written from design/protocol.md alone.

No SQL, no clock of its own, nothing of the product's code: events are a list in admission order, work is a list in order of creation,
and every rule is one short loop over them. Slow and obviously right is the point. Numbers in comments are sections of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

WAITING, QUEUED, PROCESSING, RETRY = "waiting", "queued", "processing", "retry"
PROCESSED, SKIPPED, DEAD, CANCELLED = "processed", "skipped", "dead", "cancelled"
TERMINAL = (PROCESSED, SKIPPED, DEAD, CANCELLED)
LEASE = timedelta(seconds=60)
"""`waiting` is `pending` or `blocked` of a live item: which of the two is free (7), only what may be claimed is not."""


@dataclass(frozen=True)
class Route:
    """One published version, of one incarnation of the pack."""

    key: str
    version: int
    pack: int
    kinds: tuple[str, ...]
    event_kind: str
    projection: bool
    companion: str
    attempts: int
    settle: timedelta = timedelta()
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

    route: str
    version: int
    pack: int
    lane: str


@dataclass(frozen=True)
class Event:
    """An immutable fact. Events are told apart by their ordinal."""

    ordinal: int
    item: Item
    route: Route | None
    deadline: datetime | None
    routed_from: int | None = None
    replay_of: int | None = None

    @property
    def key(self) -> Key | None:
        """None: unrouted, per event, or of a projection route but without a lane (2, S 7)."""
        if self.route is None or not self.route.projection or not self.item.lane:
            return None
        return Key(self.route.key, self.route.version, self.route.pack, self.item.lane)

    @property
    def lane(self) -> tuple[str, ...] | None:
        """The order domain of the event's work (system.md, lane); a projection keeps to its source lane."""
        assert self.route is not None
        if self.route.target:
            return ("target", self.route.target)
        return (self.route.companion, self.item.lane) if self.item.lane else None


@dataclass(eq=False)
class Work:
    """A work item. `event` is the selected one, `first` the ordinal that gives its place in the lane and never moves."""

    event: Event
    first: int
    run_after: datetime
    state: str = WAITING
    active: bool = True
    """Holds the ProjectionActiveKey; always True while a per-event item is live, False for a queued successor and for history."""
    claimed: bool = False
    attempts: int = 0
    lease_ends: datetime | None = None
    replay_of: Work | None = None
    discarded: bool = False
    ended: datetime | None = None
    named_by: int | None = None
    """Ordinal selected at creation; None for the first generation ever of its key."""

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
    def scope(self) -> tuple[str, str]:
        return self.route.event_kind, self.event.item.lane

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


@dataclass
class Reference:
    """The whole state of one namespace with one pack."""

    now: datetime
    pack: int = 1
    routes: dict[str, Route] = field(default_factory=dict)
    """Current versions by key."""
    keys_ever: set[str] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    """Retained ones, in order of admission."""
    next_ordinal: int = 1
    created: dict[int, datetime] = field(default_factory=dict)
    """When each ordinal was admitted."""
    known: dict[tuple[str, str], Event] = field(default_factory=dict)
    """(delivery id, route key; empty for an unrouted fact) → the fact that stands."""
    works: list[Work] = field(default_factory=list)
    held: set[tuple[str, ...]] = field(default_factory=set)
    paused: set[object] = field(default_factory=set)
    """"namespace", pack incarnations, and (route key, version)."""

    # 2. Admission, one event after the other: a batch must come to the same.

    def admit(self, receipts: Sequence[Sequence[Item]]) -> list[Counts]:
        before = len(self.works)
        counts = [self._admit_receipt(items) for items in receipts]
        self._name(before)
        return counts

    def _name(self, before: int) -> None:
        """A generation is named by what it selects when its admission ends, the first ever of a key by the key alone."""
        for number, work in enumerate(self.works):
            if number >= before and any(other.key == work.key for other in self.works[:number]):
                work.named_by = work.event.ordinal

    def _admit_receipt(self, items: Sequence[Item]) -> Counts:
        counts = Counts(items=len(items))
        for item in items:
            for route in self._matching(item.kind) or [None]:
                stands = self._known(item, route)
                if stands is None:
                    counts.events += 1
                    self._admit_event(item, route)
                else:
                    counts.duplicates += 1
                    counts.conflicts += stands.item.payload != item.payload
        return counts

    def _matching(self, kind: str) -> list[Route | None]:
        return [self.routes[key] for key in sorted(self.routes) if kind in self.routes[key].kinds]

    def _known(self, item: Item, route: Route | None) -> Event | None:
        """An unrouted item is known too if a route has it: retiring a route repeats nothing."""
        keys = [route.key] if route else ["", *sorted(self.keys_ever)]
        return next((self.known[item.delivery, key] for key in keys if (item.delivery, key) in self.known), None)

    def _admit_event(self, item: Item, route: Route | None, routed_from: int | None = None) -> None:
        ordinal = self._ordinal()
        event = Event(ordinal, item, route, None, routed_from)
        if event.key and route and route.settle:
            event = Event(ordinal, item, route, self._deadline(item, route), routed_from)
        self.events.append(event)
        self.created[ordinal] = self.now
        self.known[item.delivery, route.key if route else ""] = event
        if route is None:
            return
        run_after = event.deadline or self.now
        if event.key is None:
            self.works.append(Work(event, ordinal, run_after))
        else:
            self._decide(event, run_after)

    def _ordinal(self) -> int:
        self.next_ordinal += 1
        return self.next_ordinal - 1

    def _deadline(self, item: Item, route: Route) -> datetime:
        ahead = [
            event.deadline
            for event in self.events
            if event.route == route and event.item.source == item.source and event.deadline and event.deadline > self.now
        ]
        return min(ahead, default=self.now + route.settle)

    def _decide(self, event: Event, run_after: datetime) -> None:
        """The decision table."""
        mine = [work for work in self.works if work.key == event.key and work.is_open]
        active = next((work for work in mine if work.active), None)
        successor = next((work for work in mine if not work.active), None)
        assert active or not successor, "a successor stands alone"
        advanced = successor or (active if active and not active.claimed and active.replay_of is None else None)
        if advanced:
            advanced.event = event
            advanced.run_after = min(advanced.run_after, run_after)
        elif active:
            self.works.append(Work(event, event.ordinal, run_after, state=QUEUED, active=False))
        else:
            self.works.append(Work(event, event.ordinal, run_after))

    def sweep(self) -> int:
        """Unrouted facts that a current route takes get a routed copy at the end of the order (2, Rematerialization)."""
        before, made = len(self.works), 0
        for event in list(self.events):
            if event.route is None:
                for route in self._matching(event.item.kind):
                    assert route is not None
                    if (event.item.delivery, route.key) not in self.known:
                        self._admit_event(event.item, route, routed_from=event.ordinal)
                        made += 1
        self._name(before)
        return made

    # 3. Ranges.

    def inputs(self, work: Work) -> list[Event]:
        """What the flow is given."""
        if work.replay_of:
            own = self.inputs(work.root)
            return [work.event if event == work.root.event else event for event in own]
        if work.key is None:
            return [work.event]
        selected = work.event.ordinal
        ordinary = [one.event.ordinal for one in self.works if one.key == work.key and one.replay_of is None]
        lower = max((one for one in ordinary if one < selected), default=0)
        return [e for e in self.events if e.key == work.key and e.replay_of is None and lower < e.ordinal <= selected]

    # 4. Claim.

    def claimable(self) -> list[Work]:
        return [work for work in self.works if self._is_claimable(work)]

    def _is_claimable(self, work: Work) -> bool:
        if work.state not in (WAITING, RETRY) or work.run_after > self.now or self._is_paused(work):
            return False
        lane = work.event.lane
        if lane is None:
            return True
        if lane in self.held:
            return False
        others = [one for one in self.works if one is not work and one.is_live and one.event.lane == lane]
        if any(one.state in (PROCESSING, RETRY) for one in others):
            return False
        return work.state == RETRY or not any(one.run_after <= self.now and one.first < work.first for one in others)

    def _is_paused(self, work: Work) -> bool:
        return bool(self.paused & {"namespace", work.route.pack, (work.route.key, work.route.version)})

    def claim(self, works: Iterable[Work]) -> None:
        for work in works:
            work.state, work.claimed, work.lease_ends = PROCESSING, True, self.now + LEASE
            work.attempts += 1

    # 5. The end of an attempt.

    def end(self, work: Work, state: str) -> None:
        """Terminal: the queued successor becomes active, nothing else of the key moves."""
        was_active = work.active
        work.state, work.active, work.lease_ends, work.ended = state, False, None, self.now
        if was_active and work.key:
            for one in self.works:
                if one.key == work.key and one.state == QUEUED:
                    one.state, one.active = WAITING, True

    def retry(self, work: Work, delay: timedelta, *, counts: bool = True) -> None:
        work.state, work.run_after, work.lease_ends = RETRY, self.now + delay, None
        work.attempts -= not counts

    def fail(self, work: Work, delay: timedelta) -> None:
        """A counted failure: again, or dead when the budget is used up."""
        if work.attempts >= work.route.attempts:
            self.end(work, DEAD)
        else:
            self.retry(work, delay)

    def rescue(self) -> int:
        lost = [work for work in self.works if work.state == PROCESSING and work.lease_ends and work.lease_ends <= self.now]
        for work in lost:
            self.fail(work, timedelta())
        return len(lost)

    def cancel(self, work: Work) -> str:
        """Empty, or the code of the refusal."""
        if work.state == PROCESSING:
            return "processing"
        if work.state in TERMINAL:
            return "terminal"
        self.end(work, CANCELLED)
        return ""

    def discard(self, work: Work) -> str:
        if work.state != DEAD:
            return "not_dead"
        if any(one.replay_of is work and one.is_open for one in self.works):
            return "replay_running"
        if work.discarded:
            return "already_discarded"
        work.discarded = True
        return ""

    def retry_now(self, work: Work) -> bool:
        if work.state != RETRY or work.run_after <= self.now:
            return False
        work.run_after = self.now
        return True

    # 6. Replay.

    def replay(self, dead: Sequence[Work], targets: dict[str, Route]) -> list[str]:
        """One answer each: empty (replayed), `deferred`, or the code of the refusal. `targets`: route key → version to run under."""
        answers = {work: self._refusal(work) for work in dead}
        newest = {work: self._newest(work) for work in dead}
        taken: list[object] = []
        for work in sorted((one for one in dead if not answers[one]), key=lambda one: newest[one].first):
            last = newest[work]
            if last in taken or (last.key and last.scope in taken):
                answers[work] = "deferred"
            else:
                taken += [last, last.scope] if last.key else [last]
                self._replay(last, targets.get(last.route.key, last.route))
        return [answers[work] for work in dead]

    def _newest(self, work: Work) -> Work:
        replay = next((one for one in self.works if one.replay_of is work), None)
        return work if replay is None else self._newest(replay)

    def _refusal(self, work: Work) -> str:
        newest = self._newest(work)
        if work.state != DEAD:
            return "not_dead"
        if work.discarded:
            return "discarded"
        if newest is not work and newest.state not in (DEAD, CANCELLED):
            return "already_replayed"
        if newest.key and any(one.key and one.is_open and one.scope == newest.scope for one in self.works):
            return "active_generation"
        return ""

    def _replay(self, newest: Work, route: Route) -> None:
        event = Event(self._ordinal(), newest.event.item, route, None, replay_of=newest.event.ordinal)
        self.events.append(event)
        self.works.append(Work(event, event.ordinal, self.now, replay_of=newest))

    # 8. Retention.

    def prune(self, before: datetime, dead_before: datetime) -> tuple[int, int]:
        """How many events and items went. A replayed item and its replays go together or not at all."""
        gone: list[Work] = []
        events = [event for event in self.events if event.route is None and self.created[event.ordinal] < before]
        for key in {work.key for work in self.works if work.key and work.replay_of is None}:
            ordinary = [work for work in self.works if work.key == key and work.replay_of is None]
            for work in sorted(ordinary, key=lambda one: one.event.ordinal)[:-1]:
                if not self._is_over(work, before, dead_before):
                    break
                gone.append(work)
                events += self.inputs(work)
        for work in self.works:
            if work.key is None and work.replay_of is None and self._is_over(work, before, dead_before):
                gone.append(work)
                events.append(work.event)
        replays = [work for work in self.works if work.replay_of and work.root in gone]
        events += [work.event for work in replays]
        self.works = [work for work in self.works if work not in gone and work not in replays]
        self.events = [event for event in self.events if event not in events]
        self.known = {name: event for name, event in self.known.items() if event not in events}
        return len(events), len(gone) + len(replays)

    def _is_over(self, root: Work, before: datetime, dead_before: datetime) -> bool:
        def over(work: Work) -> bool:
            return work.ended is not None and work.ended < (dead_before if work.state == DEAD and not work.discarded else before)

        return all(over(work) for work in self.works if work.root is root)

    # Configuration.

    def publish(self, route: Route) -> None:
        self.routes[route.key] = route
        self.keys_ever.add(route.key)

    def retire(self, key: str) -> None:
        del self.routes[key]
