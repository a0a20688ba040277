"""The product on a real database, step by step beside the reference.

Time is the database's and stands still: each sequence sets the session's clock (`SET TIMESTAMP`), which UTC_TIMESTAMP follows on all
servers, and moves it by hand. So RunAfter, deadlines and leases are compared to the microsecond. Everything commits. What is compared
after each step is in `comparison`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from connectors import models
from connectors.configuration.routes import RouteDraft
from connectors.delivery import Headers, IngressRequest
from connectors.ingress.endpoint_facts import EndpointFacts
from connectors.ingress.store import store_within
from projection import identity
from projection.database import clock
from projection.execution.attempts import Attempt
from projection.facts import PROJECTION, RouteFacts, SourceLane
from tests.model import values
from tests.model.reference import Reference
from tests.model.values import LEASE, Event, Work
from tests.support import factories

NAMESPACES = (factories.DEFAULT_NAMESPACE, "other")
OWNER = "worker-of-the-model"
LEASE_SECONDS = int(LEASE.total_seconds())
SOURCES = (("1", "contact:1"), ("2", "contact:2"), ("3", "contact:1"))
"""(id, lane): two records may share a lane."""
KINDS = ("changed", "edited", "both", "noted", "paid", "odd")
TARGETS = {"pay": "ledger:contact", "book": "ledger:contact"}
"""Target mutation lane of every item of a route."""
EVERYTHING = 10_000


@dataclass
class Held:
    """An attempt that a worker of the model has, or believes to have."""

    work: Work
    attempt: Attempt


@dataclass
class Pending:
    """A receipt that is not routed yet."""

    id: int
    received: datetime
    items: list[values.Item]
    attempts: int = 0
    due: datetime | None = None


@dataclass
class World:
    """The product and the reference."""

    model: Reference
    endpoints: dict[str, EndpointFacts]
    facts: dict[tuple[str, str, int], RouteFacts] = field(default_factory=dict)
    incarnations: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Incarnation number → pack row id and incarnation."""
    packs: dict[str, int] = field(default_factory=dict)
    """Namespace → number of its pack's incarnation in force."""
    drafts: dict[tuple[str, str], RouteDraft] = field(default_factory=dict)
    pending: dict[str, list[Pending]] = field(default_factory=lambda: {name: [] for name in NAMESPACES})
    delivered: list[values.Item] = field(default_factory=list)
    running: list[Held] = field(default_factory=list)
    lost: list[Held] = field(default_factory=list)
    """Attempts that have ended or were taken from their worker."""
    event_ids: dict[int, int] = field(default_factory=dict)
    """Number of the event → its id."""
    taken: Counter[Event] = field(default_factory=Counter)
    """Events that were an input of ordinary work when it ended: as its flow was given them, or as it would have been when cancelled."""
    facts_ever: set[Event] = field(default_factory=set)
    """Routed events that are no replays, also those that are pruned."""
    changes: int = 0

    # Clock.

    def set_clock(self, now: datetime) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TIMESTAMP = %s", [now.timestamp()])
        self.model.now = clock.now()

    def advance(self, seconds: float) -> None:
        self.set_clock(self.model.now + timedelta(seconds=seconds))

    def catch_up(self) -> None:
        """What has been claimed or has ended was admitted in the past, also where the clock has gone back."""
        frozen = [work.event.created for work in self.model.works if work.claimed or not work.is_open]
        if frozen and max(frozen) > self.model.now:
            self.set_clock(max(frozen) + timedelta(microseconds=1))

    # Configuration.

    def adopt(self, facts: RouteFacts) -> None:
        """A version that was just published is current in the reference too; that of a paused route is paused as well."""
        versions = [version for namespace, key, version in self.facts if (namespace, key) == (facts.namespace, facts.key)]
        if versions and (facts.namespace, facts.key, max(versions)) in self.model.paused:
            self.model.paused.add((facts.namespace, facts.key, facts.version))
        self.facts[facts.namespace, facts.key, facts.version] = facts
        pack = next(number for number, (row_id, _) in self.incarnations.items() if row_id == facts.pack_id)
        give_up = facts.retry.give_up_after
        self.model.publish(
            values.Route(
                facts.namespace,
                facts.key,
                facts.version,
                pack,
                facts.provider_kinds,
                facts.event_kind,
                facts.mode == PROJECTION,
                facts.companion_pack,
                facts.retry.attempts,
                facts.settle,
                None if give_up is None else timedelta(seconds=give_up),
                TARGETS.get(facts.key, ""),
            )
        )

    def adopt_pack(self, row: models.Pack) -> None:
        number = len(self.incarnations) + 1
        self.packs[row.namespace] = number
        self.incarnations[number] = (row.id, row.incarnation)

    def facts_of(self, route: values.Route) -> RouteFacts:
        return self.facts[route.namespace, route.key, route.version]

    # Identity: the texts that the protocol prescribes.

    def work_id(self, work: Work) -> str | None:
        """None for a replay: its name is its own, it is known by what it replays."""
        if work.replay_of is not None:
            return None
        if work.key is None:
            return identity.per_event_work_id(self.delivery_key(work.event, work.route.key))
        key = self.projection_key(work.event)
        named_by = work.named_by
        return key if named_by is None else identity.generation_work_id(key, named_by.ordinal, self.event_ids[named_by.number])

    def projection_key(self, event: Event) -> str | None:
        if event.key is None or event.route is None:
            return None
        lane = self.lane(event.namespace, event.key.lane)
        return identity.projection_key(self.facts_of(event.route), self.incarnations[event.key.pack][1], lane)

    def delivery_key(self, event: Event, route_key: str) -> str:
        item = identity.item_key(event.namespace, "generic", self.account_of(event.namespace), "event", event.item.delivery, 0)
        return identity.delivery_key(item, route_key)

    def account_of(self, namespace: str) -> str:
        """Each namespace has one sender."""
        return self.endpoints[namespace].account

    def lane(self, namespace: str, text: str) -> SourceLane:
        return SourceLane(self.account_of(namespace), (text,))

    def lane_key(self, lane: tuple[str, ...]) -> str:
        namespace, *rest = lane
        target = rest[1] if rest[0] == "target" else ""
        found = identity.lane_key(namespace, rest[0], SourceLane() if target else self.lane(namespace, rest[1]), target)
        assert found is not None
        return found

    # What the flows were given.

    def account(self, work: Work, inputs: Sequence[Event]) -> None:
        """Ordinary work has ended with these inputs."""
        if work.replay_of is None:
            self.taken.update(inputs)

    def inputs_of(self, held: Held) -> list[Event]:
        """The events that the flow was given."""
        numbers = {event_id: number for number, event_id in self.event_ids.items()}
        given = {numbers[one.event_id] for one in held.attempt.inputs}
        return [event for event in self.facts_ever if event.number in given]

    # Pauses: flags that the claim reads.

    def pause(self, what: object) -> None:
        self._set_pause(what, self.model.now)
        self.model.paused.add(what)

    def resume(self, what: object) -> None:
        self._set_pause(what, None)
        self.model.paused.discard(what)

    def _set_pause(self, what: object, at: datetime | None) -> None:
        if isinstance(what, str):
            models.Namespace.objects.filter(name=what).update(paused_at=at)
        elif isinstance(what, int):
            models.Pack.objects.filter(id=self.incarnations[what][0]).update(paused_at=at)
        else:
            models.Route.objects.filter(id=self.facts[what].id).update(paused_at=at)

    def store(self, namespace: str, items: Sequence[values.Item]) -> None:
        """One delivery; its receipt waits to be routed."""
        body = json.dumps({"events": [json.loads(item.payload) for item in items]}).encode()
        outcome = store_within(self.endpoints[namespace], IngressRequest("POST", "https://hooks.example.com/", Headers({}), body))
        assert outcome.code == "accepted"
        assert outcome.receipt_id is not None
        self.pending[namespace].append(Pending(outcome.receipt_id, self.model.now, list(items)))

    def __str__(self) -> str:
        return "\n".join(describe(work) for work in self.model.works)


def describe(work: Work) -> str:
    where = "/".join(work.event.lane or ("no lane",))
    kind = "replay" if work.replay_of else "item"
    return (
        f"{kind} of {work.route.key} v{work.route.version} in {where}: position {work.first}, selects {work.event.ordinal} "
        f"({work.event.number}), {work.state}, due {work.run_after:%H:%M:%S.%f}, attempt {work.attempts}"
    )
