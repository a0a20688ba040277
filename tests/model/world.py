"""The product on a real database, step by step beside the reference, and the comparison of the two.

Time is the database's and stands still: each sequence sets the session's clock (`SET TIMESTAMP`), which UTC_TIMESTAMP follows on all
servers, and moves it by hand. So RunAfter, deadlines and leases are compared to the microsecond. Everything commits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, transaction

from connectors import endpoints_cache, installations, models, routes
from connectors.delivery import Headers, IngressRequest
from connectors.endpoints_cache import EndpointFacts
from connectors.ingress_audit import audit_everything
from connectors.receive import store
from connectors.routes import RouteDraft
from projection import clock, flows, identity
from projection.claim import claim
from projection.clock import to_db
from projection.execute import Attempt, prepare
from projection.facts import PER_EVENT, PROJECTION, RetryPolicy, RouteFacts
from projection.models import Event as EventRow
from projection.ranges import read_ranges
from projection.repair import Repaired, repair
from tests import factories
from tests.deliveries import SETTINGS, forget_caches
from tests.model import reference
from tests.model.reference import Reference, Work

NAMESPACE = factories.DEFAULT_NAMESPACE
OWNER = "worker-of-the-model"
LEASE_SECONDS = int(reference.LEASE.total_seconds())
SOURCES = (("1", "contact:1"), ("2", "contact:2"), ("3", "contact:1"))
"""(id, lane): two records may share a lane."""
EVERYTHING = 10_000
STEADY = RetryPolicy(base=0, attempts=3)
"""Exactly the floor of one second between attempts: no jitter to compare."""


def _draft(key: str, kinds: tuple[str, ...], kind: str, flow: str, **more: Any) -> RouteDraft:
    more = {"mode": PER_EVENT, "retry": STEADY, **more}
    return RouteDraft(key=key, pack_name="generic", provider_kinds=kinds, event_kind=kind, flow=flow, **more)


DRAFTS = (
    _draft("contact", ("changed", "both"), "contact.changed", "test.record", mode=PROJECTION),
    _draft("mirror", ("changed",), "contact.changed", "other.record", mode=PROJECTION, queue_class="bulk"),
    _draft("settled", ("edited", "both"), "contact.edited", "test.settle", mode=PROJECTION, settle_seconds=5.0),
    _draft("note", ("noted", "both"), "contact.noted", "test.note", queue_class="interactive"),
    _draft("pay", ("paid",), "invoice.paid", "test.pay", target_lane="ledger:{type}"),
    _draft("book", ("paid",), "invoice.booked", "other.book", target_lane="ledger:contact", retry=replace(STEADY, attempts=1)),
)
"""Two projections in one lane, one of them settling; a second companion on the same events and in the same replay scope; a per-event
route in the projections' lane; two companions that share a target lane."""
TARGETS = {"pay": "ledger:contact", "book": "ledger:contact"}
KINDS = ("changed", "edited", "both", "noted", "paid", "odd")


class Row(NamedTuple):
    """A work item as it is stored; times naive."""

    id: int
    work_id: str
    replay_of: str | None
    key: str | None
    active_key: str | None
    event: int
    ordinal: int
    position: int
    lane: str | None
    holder: str | None
    state: str
    run_after: datetime
    attempts: int
    claimed: int
    lease_ends: datetime | None
    discarded: int
    pack: int
    ended: datetime | None


ROWS = """
SELECT Id, WorkId, ReplayOfWorkId, ProjectionKey, ProjectionActiveKey, EventId, LaneOrdinal, LanePosition, LaneKey, LaneHolderKey, State,
       RunAfter, Attempts, ClaimedAt IS NOT NULL, LeaseExpiresAt, DiscardedAt IS NOT NULL, PackId, TerminalAt
FROM `_System_ConnectorWorkItem`
"""


def never_called(_: object) -> None:
    raise AssertionError("the model's flows are not executed: the test ends each attempt itself")


@dataclass
class Held:
    """An attempt that a worker of the model has, or believes to have."""

    work: Work
    attempt: Attempt


@dataclass
class World:
    """The product and the reference."""

    model: Reference
    endpoint: EndpointFacts
    facts: dict[tuple[str, int], RouteFacts] = field(default_factory=dict)
    incarnations: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Incarnation number → pack row id and incarnation."""
    drafts: dict[str, RouteDraft] = field(default_factory=dict)
    pending: list[tuple[int, list[reference.Item]]] = field(default_factory=list)
    """Receipts not routed yet: id and items."""
    delivered: list[reference.Item] = field(default_factory=list)
    running: list[Held] = field(default_factory=list)
    lost: list[Held] = field(default_factory=list)
    """Attempts that have ended or were taken from their worker."""
    event_ids: dict[int, int] = field(default_factory=dict)
    """Ordinal → event id."""
    changes: int = 0

    # Clock.

    def set_clock(self, now: datetime) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TIMESTAMP = %s", [now.timestamp()])
        self.model.now = clock.now()

    def advance(self, seconds: float) -> None:
        self.set_clock(self.model.now + timedelta(seconds=seconds))

    # Configuration.

    def adopt(self, facts: RouteFacts) -> None:
        """A version that was just published is current in the reference too."""
        self.facts[facts.key, facts.version] = facts
        pack = next(number for number, (row_id, _) in self.incarnations.items() if row_id == facts.pack_id)
        self.model.publish(
            reference.Route(
                facts.key,
                facts.version,
                pack,
                facts.provider_kinds,
                facts.event_kind,
                facts.mode == PROJECTION,
                facts.companion_pack,
                facts.retry.attempts,
                facts.settle,
                TARGETS.get(facts.key, ""),
            )
        )

    def adopt_pack(self, row: models.Pack) -> None:
        self.model.pack = len(self.incarnations) + 1
        self.incarnations[self.model.pack] = (row.id, row.incarnation)

    # Identity: the texts that the protocol prescribes.

    def work_id(self, work: Work) -> str | None:
        """None for a replay: its name is its own, it is known by what it replays."""
        if work.replay_of is not None:
            return None
        if work.key is None:
            item = work.event.item
            return identity.per_event_work_id(identity.delivery_key(NAMESPACE, "generic", item.delivery, work.route.key))
        key = self.projection_key(work.key)
        return key if work.named_by is None else identity.generation_work_id(key, work.named_by, 0)

    def projection_key(self, key: reference.Key) -> str:
        return identity.projection_key(self.facts[key.route, key.version], self.incarnations[key.pack][1], key.lane)

    def rows(self) -> dict[Work, Row]:
        """The row of each work item of the reference. Fails unless they are the same ones."""
        with connection.cursor() as cursor:
            cursor.execute(ROWS)
            by_id = {row.work_id: row for row in (Row(*values) for values in cursor.fetchall())}
        replays = {row.replay_of: row for row in by_id.values() if row.replay_of}
        found: dict[Work, Row] = {}
        for work in self.model.works:
            row = replays.get(found[work.replay_of].work_id) if work.replay_of else by_id.get(str(self.work_id(work)))
            assert row is not None, f"the product has no item for {describe(work)}; it has {sorted(by_id)}"
            found[work] = row
        assert len(found) == len(by_id), f"{len(by_id)} items instead of {len(found)}"
        return found

    def row(self, work: Work) -> Row:
        return self.rows()[work]

    def lane_key(self, lane: tuple[str, ...]) -> str:
        target = lane[1] if lane[0] == "target" else ""
        found = identity.lane_key(NAMESPACE, lane[0], "" if target else lane[1], target)
        assert found is not None
        return found

    # Comparison.

    def compare(self) -> None:
        """After each step: the same events, work, ranges and claimable items."""
        self._compare_events()
        rows = self.rows()
        for work, row in rows.items():
            assert row == self._expected(work, row), describe(work)
        self._compare_ranges(rows)
        self._compare_claimable(rows)

    def _compare_events(self) -> None:
        last = max(self.event_ids.values(), default=0)
        events = {event.ordinal: event for event in self.model.events}
        for row in EventRow.objects.filter(id__gt=last).order_by("enqueue_ordinal"):
            event = events[row.enqueue_ordinal]
            self.event_ids[event.ordinal] = row.id
            assert (row.source_id, row.source_lane, row.payload) == (event.item.source, event.item.lane, event.item.payload)
            assert (row.route_id, row.projection_key) == (
                self.facts[event.route.key, event.route.version].id if event.route else None,
                self.projection_key(event.key) if event.key else None,
            ), event
            assert row.next_attempt_at == event.deadline, event
            assert row.routed_from_event_id == (self.event_ids[event.routed_from] if event.routed_from else None)
            assert row.replay_of_event_id == (self.event_ids[event.replay_of] if event.replay_of else None)
        assert events.keys() <= self.event_ids.keys()

    def _expected(self, work: Work, row: Row) -> Row:
        """The row that the item should have. Free are its id, a replay's name, and which of the waiting ones are `blocked` (7)."""
        key = self.projection_key(work.key) if work.key else None
        lane = self.lane_key(work.event.lane) if work.event.lane else None
        state = "blocked" if work.state == reference.QUEUED else work.state
        free = work.state == reference.WAITING and row.state in ("pending", "blocked")
        return Row(
            id=row.id,
            work_id=row.work_id,
            replay_of=row.replay_of,
            key=key,
            active_key=key if work.active and work.is_open else None,
            event=self.event_ids[work.event.ordinal],
            ordinal=work.event.ordinal,
            position=work.first,
            lane=lane,
            holder=lane if work.state in (reference.PROCESSING, reference.RETRY) else None,
            state=row.state if free else state,
            run_after=to_db(work.run_after),
            attempts=work.attempts,
            claimed=int(work.claimed),
            lease_ends=to_db(work.lease_ends),
            discarded=int(work.discarded),
            pack=self.incarnations[work.route.pack][0],
            ended=to_db(work.ended),
        )

    def _compare_ranges(self, rows: dict[Work, Row]) -> None:
        ordinary = {work: row.id for work, row in rows.items() if work.key and work.replay_of is None}
        ranges = read_ranges(ordinary.values()) if ordinary else {}
        for work, item in ordinary.items():
            expected = [event.ordinal for event in self.model.inputs(work)]
            assert [row.ordinal for row in ranges[item]] == expected, f"inputs of {describe(work)}"

    def _compare_claimable(self, rows: dict[Work, Row]) -> None:
        expected = sorted(rows[work].id for work in self.model.claimable())
        offered = self.offered()
        works = {row.id: describe(work) for work, row in rows.items()}
        assert offered == expected, (
            f"a claim takes {[works[one] for one in offered]} instead of {[works[one] for one in expected]}\n{self}"
        )

    def offered(self) -> list[int]:
        """Ids of what a claim of everything takes; it is rolled back."""
        transaction.set_autocommit(False)
        try:
            batch = claim(EVERYTHING, owner=OWNER, lease_seconds=LEASE_SECONDS)
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)
        return sorted(one.item.id for one in batch.items)

    def claim(self, limit: int) -> None:
        """Claim, and compare what was taken and its inputs. Which of the claimable ones a short batch takes is free."""
        batch = claim(limit, owner=OWNER, lease_seconds=LEASE_SECONDS)
        rows = self.rows()
        works = {row.id: work for work, row in rows.items()}
        taken = [works[one.item.id] for one in batch.items]
        claimable = self.model.claimable()
        assert set(taken) <= set(claimable), "an item was claimed that is not claimable"
        assert len(taken) == min(limit, len(claimable)), "a claim left work behind"
        self.model.claim(taken)
        attempts, broken = prepare(batch, OWNER)
        assert not broken
        for attempt in attempts:
            work = works[attempt.claimed.item.id]
            self.running.append(Held(work, attempt))
            self._compare_inputs(work, attempt)

    def _compare_inputs(self, work: Work, attempt: Attempt) -> None:
        """Payloads and the facts' ordinals: a replay event passes for the event that it replays."""
        root = work.root.event.ordinal
        expected = [(root if e == work.event else e.ordinal, e.item.payload) for e in self.model.inputs(work)]
        assert [(one.ordinal, one.payload) for one in attempt.inputs] == expected, f"inputs of {describe(work)}"

    # The end of a sequence.

    def prove(self) -> None:
        """All work has ended: account for every event and prove the invariants."""
        assert EventRow.objects.count() == len(self.model.events)
        self._account()
        assert repair() == Repaired(0, 0, 0)
        report = audit_everything()
        assert report.ok, report.violations

    def _account(self) -> None:
        """Each event was an input of exactly one ordinary item, which is terminal."""
        owners: dict[int, list[Work]] = {event.ordinal: [] for event in self.model.events}
        for work in self.model.works:
            for event in self.model.inputs(work) if work.replay_of is None else ():
                owners[event.ordinal].append(work)
        for event in self.model.events:
            wanted = 1 if event.route and event.replay_of is None else 0
            assert len(owners[event.ordinal]) == wanted, (
                f"{event} is an input of {[describe(one) for one in owners[event.ordinal]]}"
            )

    # Pauses: flags that the claim reads.

    def pause(self, what: object) -> None:
        self._set_pause(what, self.model.now)
        self.model.paused.add(what)

    def resume(self, what: object) -> None:
        self._set_pause(what, None)
        self.model.paused.discard(what)

    def _set_pause(self, what: object, at: datetime | None) -> None:
        if what == "namespace":
            models.Namespace.objects.filter(name=NAMESPACE).update(paused_at=at)
        elif isinstance(what, int):
            models.Pack.objects.filter(id=self.incarnations[what][0]).update(paused_at=at)
        else:
            models.Route.objects.filter(id=self.facts[what].id).update(paused_at=at)  # type: ignore[index]

    def store(self, items: Sequence[reference.Item], endpoint: EndpointFacts) -> int:
        """One delivery; the id of its receipt."""
        body = json.dumps({"events": [json.loads(item.payload) for item in items]}).encode()
        outcome = store(endpoint, IngressRequest("POST", "https://hooks.example.com/", Headers({}), body))
        assert outcome.code == "accepted"
        assert outcome.receipt_id is not None
        return outcome.receipt_id

    def __str__(self) -> str:
        return "\n".join(describe(work) for work in self.model.works)


def describe(work: Work) -> str:
    where = "/".join(work.event.lane or ("no lane",))
    kind = "replay" if work.replay_of else "item"
    return (
        f"{kind} of {work.route.key} v{work.route.version} in {where}: position {work.first}, selects {work.event.ordinal}, {work.state}, "
        f"due {work.run_after:%H:%M:%S.%f}, attempt {work.attempts}"
    )


# Beginning of a sequence.

CONFIGURED = (models.Namespace, models.Pack, models.Endpoint, models.Route)
FILLED = (
    "_System_ConnectorEvent",
    "_System_ConnectorWorkItem",
    "_System_ConnectorWorkFailure",
    "_System_ConnectorLaneHold",
    "_System_ConnectorReceipt",
    "_System_ConnectorAudit",
)


@dataclass(frozen=True)
class Beginning:
    """The configured, empty database that each sequence starts from."""

    rows: dict[Any, list[Any]]
    facts: tuple[RouteFacts, ...]
    pack: models.Pack

    def world(self) -> World:
        """Everything as it was; cheap: a handful of statements."""
        with connection.cursor() as cursor:
            for table in FILLED:
                cursor.execute(f"DELETE FROM `{table}`")
        for model, rows in self.rows.items():
            model.objects.all().delete()
            model.objects.bulk_create(rows)
        endpoint = endpoints_cache.load((NAMESPACE, "main"))
        assert endpoint is not None
        world = World(Reference(START), endpoint, drafts={draft.key: draft for draft in DRAFTS})
        world.set_clock(START)
        world.adopt_pack(self.pack)
        for facts in self.facts:
            world.adopt(facts)
        return world


START = datetime.fromisoformat("2026-03-01T12:00:00+00:00")


def begin() -> Beginning:
    """Install the pack, its endpoint and the routes, and register the flows."""
    from projection import activation

    forget_caches()
    activation.activate("model")
    pack = installations.install(NAMESPACE, "generic", actor="model", settings=SETTINGS)
    factories.endpoint(pack)
    facts = tuple(routes.publish(NAMESPACE, draft, actor="model").route_facts for draft in DRAFTS)
    return Beginning({model: list(model.objects.all()) for model in CONFIGURED}, facts, pack)


def register_flows() -> None:
    for name in {draft.flow for draft in DRAFTS}:
        flows.flow(name)(never_called)


def forget_flows() -> None:
    for name in {draft.flow for draft in DRAFTS}:
        flows.forget(name)
    with connection.cursor() as cursor:
        cursor.execute("SET TIMESTAMP = DEFAULT")
