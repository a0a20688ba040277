"""The protocol as a plain program: what must be true after each step, written from docs/protocol.md alone.

No SQL, no clock of its own, nothing of the product's code: events are a list in the order in which they were written, work is a list in
order of creation, and every rule is one short loop over them. Slow and obviously right is the point. Numbers in comments are sections
of the protocol. What replays and retention do is in `replays` and `retention`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.model.order import in_order, latest, owner
from tests.model.values import (
    CANCELLED,
    DEAD,
    LEASE,
    PROCESSED,
    PROCESSING,
    QUEUED,
    RETRY,
    TERMINAL,
    WAITING,
    Counts,
    Event,
    Item,
    Key,
    Route,
    Work,
)


class Loss(Exception):
    """A newer selection would no longer represent an input that the present one does (docs/protocol.md#input-loss); nothing was
    changed.
    """


@dataclass
class Reference:
    """The whole state of all namespaces, each with one pack."""

    now: datetime
    activated: bool = True
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    """(namespace, key) → the current version."""
    keys_ever: set[tuple[str, str]] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    """Retained ones, in the order in which they were written."""
    written: int = 0
    """Number of the newest event."""
    next_ordinal: dict[str, int] = field(default_factory=dict)
    """By namespace."""
    known: dict[tuple[str, str, str], Event] = field(default_factory=dict)
    """(namespace, delivery id, route key; empty for an unrouted fact) → the fact that stands."""
    works: list[Work] = field(default_factory=list)
    held: set[tuple[str, ...]] = field(default_factory=set)
    paused: set[object] = field(default_factory=set)
    """Namespaces, pack incarnations, and (namespace, route key, version)."""
    owned: set[Event] = field(default_factory=set)
    """Events that an old binary may still run."""
    legacy_leases: dict[Event, datetime] = field(default_factory=dict)
    """When the lease ends that an old binary took of an event."""
    legacy_results: set[Event] = field(default_factory=set)
    """Events that an old binary has run to their end."""

    # 2. Admission.

    def admit(self, namespace: str, receipts: Sequence[Sequence[Item]]) -> list[Counts]:
        """One admitted transaction. Raises Loss."""
        fresh: list[Event] = []
        missing: list[Event] = []
        known = dict(self.known)
        counts = []
        for items in receipts:
            counts.append(Counts(items=len(items)))
            for sequence, item in enumerate(items):
                for route in self._matching(namespace, item.kind) or [None]:
                    stands = self._known(known, namespace, item, route)
                    if stands is None:
                        counts[-1].events += 1
                        fresh.append(self._fact(fresh, namespace, item, sequence, route))
                        known[namespace, item.delivery, route.key if route else ""] = fresh[-1]
                    else:
                        counts[-1].duplicates += 1
                        counts[-1].conflicts += stands.item.payload != item.payload
                        missing += [stands] if stands not in fresh and stands not in missing and self._is_missing(stands) else []
        self._commit(sorted(missing, key=lambda event: event.number), fresh)
        return counts

    def _matching(self, namespace: str, kind: str) -> list[Route | None]:
        return [self.routes[one] for one in sorted(self.routes) if one[0] == namespace and kind in self.routes[one].kinds]

    def _known(self, known: dict[tuple[str, str, str], Event], namespace: str, item: Item, route: Route | None) -> Event | None:
        """An unrouted item is known too if a route has it: retiring a route repeats nothing."""
        keys = [route.key] if route else ["", *sorted(key for name, key in self.keys_ever if name == namespace)]
        found = (known.get((namespace, item.delivery, key)) for key in keys)
        return next((event for event in found if event), None)

    def _fact(
        self, fresh: Sequence[Event], namespace: str, item: Item, sequence: int, route: Route | None, routed_from: int | None = None
    ) -> Event:
        """The next event of an admission that has written `fresh`."""
        deadline = None if self.activated else self.now
        if route and route.projection and item.lane and route.settle:
            deadline = self._deadline(fresh, item, route)
        return Event(
            self.written + len(fresh) + 1,
            namespace,
            self.next_ordinal.get(namespace, 1) + len(fresh),
            self.now,
            sequence,
            item,
            route,
            deadline,
            owned_by_event=not self.activated,
            routed_from=routed_from,
        )

    def _deadline(self, fresh: Sequence[Event], item: Item, route: Route) -> datetime:
        """The earliest that is still ahead for the lane; the first of an admission sets it for all of that admission."""
        of_lane = [event for event in fresh if event.route == route and event.item.lane == item.lane and event.key]
        if of_lane:
            assert of_lane[0].deadline
            return of_lane[0].deadline
        same = (event.deadline for event in self.events if event.route == route and event.item.lane == item.lane)
        return min((deadline for deadline in same if deadline and deadline > self.now), default=self.now + route.settle)

    def _commit(self, repaired: Sequence[Event], fresh: Sequence[Event]) -> None:
        """Write the fresh events, and the work of these and of the stored ones that lack it. Raises Loss: then nothing is written."""
        groups: dict[Key, list[Event]] = {}
        for event in [*repaired, *fresh]:
            if event.key:
                groups.setdefault(event.key, []).append(event)
        for key, group in groups.items():
            self._refuse_loss(key, group, fresh)
        for event in fresh:
            self.written = event.number
            self.next_ordinal[event.namespace] = event.ordinal + 1
            self.events.append(event)
            self.known[event.namespace, event.item.delivery, event.route.key if event.route else ""] = event
            if event.owned_by_event:
                self.owned.add(event)
        decided: set[Key] = set()
        for event in sorted([*repaired, *fresh], key=lambda one: (one.ordinal, one.number)):
            if event.route and event.key is None:
                self.works.append(Work(event, event.ordinal, self._run_after(event)))
            elif event.key and event.key not in decided:
                decided.add(event.key)
                self._decide(event.key, groups[event.key])

    def _run_after(self, event: Event) -> datetime:
        return max(event.deadline or self.now, self.now)

    def _current(self, key: Key) -> tuple[Work | None, Work | None]:
        mine = [work for work in self.works if work.key == key and work.is_open]
        active = next((work for work in mine if work.active), None)
        successor = next((work for work in mine if not work.active), None)
        assert active or not successor, "a successor stands alone"
        return active, successor

    def _advanced(self, key: Key) -> Work | None:
        """The generation whose selection a new event moves."""
        active, successor = self._current(key)
        return successor or (active if active and not active.claimed and active.replay_of is None else None)

    def _decide(self, key: Key, group: Sequence[Event]) -> None:
        """The decision table, for the newest event of the admission."""
        head = latest(group)
        run_after = min(self._run_after(event) for event in group)
        advanced = self._advanced(key)
        if advanced:
            advanced.event = latest((advanced.event, head))
            advanced.run_after = min(advanced.run_after, run_after)
            return
        active, _ = self._current(key)
        is_first_ever = not any(work.key == key for work in self.works)
        work = Work(head, min(event.ordinal for event in group), run_after, named_by=None if is_first_ever else head)
        if active:
            work.state, work.active = QUEUED, False
        self.works.append(work)

    def _refuse_loss(self, key: Key, group: Sequence[Event], fresh: Sequence[Event]) -> None:
        advanced = self._advanced(key)
        if advanced is None:
            return
        before = [work.event for work in self.ordinary(key)]
        newest = latest((advanced.event, latest(group)))
        after = [newest if event is advanced.event else event for event in before]
        before, after = in_order(before), in_order(after)
        for event in [*self.events, *fresh]:
            if event.key == key and event.replay_of is None and owner(event, before) and not owner(event, after):
                raise Loss

    def sweep(self, namespace: str) -> tuple[int, int]:
        """Unrouted facts that a current route takes get a routed copy at the end of the order (2, Rematerialization): (copies, facts that
        would lose an input). These are found by halves, so that they keep no other from being routed.
        """
        facts = [event for event in self.events if event.route is None and event.namespace == namespace and self._takers(event)]
        return self._sweep(facts)

    def _takers(self, event: Event) -> list[Route]:
        routes = [route for route in self._matching(event.namespace, event.item.kind) if route]
        return [route for route in routes if (event.namespace, event.item.delivery, route.key) not in self.known]

    def _sweep(self, facts: Sequence[Event]) -> tuple[int, int]:
        fresh: list[Event] = []
        for event in facts:
            for route in self._takers(event):
                fresh.append(self._fact(fresh, event.namespace, event.item, event.sequence, route, event.number))
        try:
            self._commit([], fresh)
        except Loss:
            half = len(facts) // 2
            parts = [self._sweep(facts[:half]), self._sweep(facts[half:])] if half else [(0, 1)]
            return sum(part[0] for part in parts), sum(part[1] for part in parts)
        return len(fresh), 0

    def _is_missing(self, event: Event) -> bool:
        """Whether no retained ordinary work represents it (docs/protocol.md#coverage)."""
        if event.route is None or event.replay_of:
            return False
        if event.key is None:
            return not any(work.event is event for work in self.works)
        return owner(event, in_order([work.event for work in self.ordinary(event.key)])) is None

    def missing(self, namespace: str) -> list[Event]:
        return [event for event in self.events if event.namespace == namespace and self._is_missing(event)]

    def repair(self, namespace: str) -> tuple[int, int]:
        """Make the work of events that have none: (events, projections that would lose an input and stay as they are)."""
        parts: dict[object, list[Event]] = {}
        for event in sorted(self.missing(namespace), key=lambda one: (one.ordinal, one.number)):
            parts.setdefault(event.key or event, []).append(event)
        made, refused = 0, 0
        for part in parts.values():
            try:
                self._commit(sorted(part, key=lambda one: one.number), [])
            except Loss:
                refused += 1
            else:
                made += len(part)
        return made, refused

    def write_legacy(self, namespace: str, item: Item, route: Route) -> Event:
        """An old binary wrote an event; its work is missing until somebody looks."""
        self.written += 1
        event = Event(self.written, namespace, 0, self.now, 0, item, route, owned_by_event=True)
        self.events.append(event)
        self.known[namespace, item.delivery, route.key] = event
        self.owned.add(event)
        return event

    # 3. Ranges.

    def ordinary(self, key: Key) -> list[Work]:
        return [work for work in self.works if work.key == key and work.replay_of is None]

    def inputs(self, work: Work) -> list[Event]:
        """What the flow is given."""
        if work.replay_of:
            own = self.inputs(work.root)
            return [work.event if event is work.root.event else event for event in own]
        if work.key is None:
            return [work.event]
        history = in_order([one.event for one in self.ordinary(work.key)])
        events = [event for event in self.events if event.key == work.key and event.replay_of is None]
        return in_order([event for event in events if owner(event, history) is work.event])

    # 4. Claim.

    def claimable(self) -> list[Work]:
        """What a claim may take; it first ends what an old binary has run. Suspects come first, and one at a time."""
        before = [(work, work.state, work.active, work.ended) for work in self.works]
        while run := self.run_by_old_binary():
            self.end(run[0], PROCESSED)
        found = [work for work in self.works if self._is_claimable(work)]
        found = [work for work in found if work.workers_lost] or found
        for work, state, active, ended in before:
            work.state, work.active, work.ended = state, active, ended
        return found

    def run_by_old_binary(self) -> list[Work]:
        """Items whose turn it is, that nobody claimed, and whose event an old binary has run (4, Rolling upgrade)."""
        return [one for one in self.works if self._has_result(one) and self._is_claimable(one)]

    def _has_result(self, work: Work) -> bool:
        return work.event in self.legacy_results and not work.claimed

    def _is_claimable(self, work: Work) -> bool:
        if work.state not in (WAITING, RETRY) or work.run_after > self.now or self._is_paused(work):
            return False
        if work.key and not self.activated and not self._has_result(work):
            return False
        if not work.claimed and self.is_leased_by_old_binary(work.event):
            return False
        lane = work.event.lane
        return lane is None or (lane not in self.held and self._is_first(work, lane))

    def _is_first(self, work: Work, lane: tuple[str, ...]) -> bool:
        """No other item of the lane holds it, and it is the first due one."""
        siblings = [one for one in self.works if one.is_live and one.event.lane == lane]
        if any(one.state in (PROCESSING, RETRY) for one in siblings):
            return work.state == RETRY
        return work is min((one for one in siblings if one.run_after <= self.now), key=lambda one: one.first)

    def _is_paused(self, work: Work) -> bool:
        route = work.route
        return bool(self.paused & {route.namespace, route.pack, (route.namespace, route.key, route.version)})

    def is_leased_by_old_binary(self, event: Event) -> bool:
        return event in self.owned and event in self.legacy_leases and self.legacy_leases[event] > self.now

    def claim(self, works: Iterable[Work]) -> None:
        for work in works:
            work.state, work.lease_ends = PROCESSING, self.now + LEASE
            work.claimed, work.first_claimed = self.now, work.first_claimed or self.now
            work.attempts += 1
            self.owned.discard(work.event)

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

    def clear(self, work: Work) -> None:
        """Its flow failed by itself: another item was guilty of the lost worker."""
        work.workers_lost = 0 if work.workers_lost == 1 else work.workers_lost

    def fail(self, work: Work, delay: timedelta) -> None:
        """A counted failure: again, or dead when the budget is used up."""
        if work.attempts >= work.route.attempts or self._is_given_up(work):
            self.end(work, DEAD)
        else:
            self.retry(work, delay)

    def defer(self, work: Work, delay: timedelta) -> None:
        """RetryLater without counting: up to the route's GiveUpAfter."""
        if self._is_given_up(work):
            self.end(work, DEAD)
        else:
            self.retry(work, delay, counts=False)

    def _is_given_up(self, work: Work) -> bool:
        """Counted from the first attempt's start to this one's."""
        assert work.claimed
        assert work.first_claimed
        return work.route.give_up is not None and work.claimed - work.first_claimed >= work.route.give_up

    def rescue(self) -> int:
        """All work runs in one worker, which is lost once the last of its leases has run out (9, Lost workers)."""
        lost = [work for work in self.works if work.state == PROCESSING and work.lease_ends]
        if any(work.lease_ends > self.now for work in lost if work.lease_ends):
            return 0
        for work in lost:
            if not work.workers_lost and len(lost) > 1:
                work.workers_lost = 1
                self.retry(work, timedelta(), counts=False)
                continue
            work.workers_lost = max(work.workers_lost, 1) + 1
            if work.workers_lost > 2:
                self.fail(work, timedelta(seconds=1))
            elif work.attempts >= work.route.attempts:
                self.end(work, DEAD)
            else:
                self.retry(work, timedelta())
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

    # Configuration.

    def publish(self, route: Route) -> None:
        self.routes[route.namespace, route.key] = route
        self.keys_ever.add((route.namespace, route.key))

    def retire(self, namespace: str, key: str) -> None:
        del self.routes[namespace, key]
