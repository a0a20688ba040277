"""Steps that bring events: deliveries, routing, sweep and repair, and what an old binary does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection

from connectors.ingress import endpoint_facts
from connectors.models import Receipt
from connectors.routing import sweep
from connectors.routing.router import BACKOFF_SECONDS, QUARANTINE_AFTER, route_batch
from projection.admission import activation
from projection.admission.rows import event_row
from projection.facts import InboundEvent
from projection.identity import sha256_text
from projection.integrity.repair import repair
from projection.models import Event as EventRow
from tests.model.choosing import Written, pick, place
from tests.model.reference import Loss
from tests.model.values import LEASE, Counts, Event, Item, Route
from tests.model.world import KINDS, NAMESPACES, SOURCES, Pending, World


@dataclass(frozen=True, repr=False)
class One(Written):
    """One delivered item. `again` None: a new delivery; else a copy of an earlier one, `other` with another payload."""

    kind: int = 0
    source: int = 0
    again: int | None = None
    other: bool = False
    laneless: bool = False

    def item(self, world: World) -> Item:
        earlier = pick(world.delivered, self.again) if self.again is not None else None
        if earlier is not None and not self.other:
            return earlier
        delivery = earlier.delivery if earlier else f"d{len(world.delivered) + 1}"
        kind = earlier.kind if earlier else KINDS[self.kind % len(KINDS)]
        source, lane = (earlier.source, earlier.lane) if earlier else SOURCES[self.source % len(SOURCES)]
        lane = "" if self.laneless else lane
        members = {
            "id": delivery,
            "kind": kind,
            "type": "contact",
            "contact": source,
            "lane": lane or None,
            "n": len(world.delivered),
        }
        item = Item(delivery, kind, source, lane, json.dumps(members))
        world.delivered.append(item)
        return item


@dataclass(frozen=True, repr=False)
class Deliver(Written):
    """Store a delivery of one or more items; route it at once or leave it waiting. `stale`: by an endpoint read before an upgrade."""

    items: tuple[One, ...] = (One(),)
    routed: bool = True
    stale: bool = False
    at: int = 0

    def take(self, world: World) -> None:
        namespace = place(self.at)
        items = [one.item(world) for one in self.items]
        if not self.stale:
            found = endpoint_facts.load((namespace, "main"))
            assert found is not None
            world.endpoints[namespace] = found
        world.store(namespace, items)
        if self.routed:
            RouteReceipts(1000, self.at).take(world)


@dataclass(frozen=True, repr=False)
class RouteReceipts(Written):
    """Route the oldest receipts of a namespace in one batch."""

    batch: int = 1
    at: int = 0

    def take(self, world: World) -> None:
        namespace = place(self.at)
        waiting = world.pending[namespace]
        due = [one for one in waiting if one.due is None or one.due <= world.model.now]
        batch = sorted(due, key=lambda one: (one.received, one.id))[: self.batch]
        report = route_batch(namespace, self.batch)
        counts = self._admit(world, namespace, batch)
        expected = {one.id: (c.items, c.events, c.duplicates, c.conflicts) for one, c in zip(batch, counts, strict=True) if c}
        rows = Receipt.objects.filter(id__in=[one.id for one in batch], state__in=["routed", "partial"])
        assert {row.id: (row.item_count, row.event_count, row.duplicate_count, row.conflict_count) for row in rows} == expected
        assert (report.seen, report.receipts) == (len(batch), len(expected))
        for one in batch:
            if one.id in expected or one.attempts == QUARANTINE_AFTER:
                waiting.remove(one)

    @staticmethod
    def _admit(world: World, namespace: str, batch: list[Pending]) -> list[Counts | None]:
        """The batch whole; where that would lose an input, one by one, and those at fault later."""
        try:
            return [*world.model.admit(namespace, [one.items for one in batch])]
        except Loss:
            return [_admit_alone(world, namespace, one) for one in batch]


def _admit_alone(world: World, namespace: str, one: Pending) -> Counts | None:
    try:
        return world.model.admit(namespace, [one.items])[0]
    except Loss:
        one.due = world.model.now + timedelta(seconds=BACKOFF_SECONDS[min(one.attempts, len(BACKOFF_SECONDS) - 1)])
        one.attempts += 1
        return None


@dataclass(frozen=True, repr=False)
class Sweep(Written):
    """Route what is unrouted; what would lose an input stays as it is."""

    def take(self, world: World) -> None:
        expected = [world.model.sweep(name) for name in sorted(NAMESPACES)]
        swept = sweep.sweep()
        assert (swept.copies, len(swept.refused)) == (sum(one[0] for one in expected), sum(one[1] for one in expected))
        assert {one.code for one in swept.refused} <= {"unsafe_replacement"}


@dataclass(frozen=True, repr=False)
class Repair(Written):
    """Make missing work; only what an old binary wrote ever lacks it. What would lose an input stays as it is."""

    def take(self, world: World) -> None:
        missing = {name: world.model.missing(name) for name in NAMESPACES}
        in_order = sorted((name for name in NAMESPACES if missing[name]), key=lambda name: missing[name][0].number)
        expected = [world.model.repair(name) for name in in_order]
        repaired = repair()
        assert (repaired.missing_tasks, len(repaired.refused)) == (sum(one[0] for one in expected), sum(one[1] for one in expected))
        assert {one.code for one in repaired.refused} <= {"unsafe_replacement"}
        assert (repaired.handoffs, repaired.lanes) == (0, 0)


@dataclass(frozen=True, repr=False)
class BeforeActivation(Written):
    """The history begins before the protocol is activated. Only the first step."""

    def take(self, world: World) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM `_System_ConnectorProjectionProtocol`")
        activation.forget()
        world.model.activated = False


@dataclass(frozen=True, repr=False)
class Activate(Written):
    def take(self, world: World) -> None:
        activation.activate("model")
        world.model.activated = True


@dataclass(frozen=True, repr=False)
class OldBinaryWrites(Written):
    """An old binary routes an item: facts without ordinals, owned by themselves, without work. The clock is never quite the same."""

    kind: int = 0
    source: int = 0
    at: int = 0

    def take(self, world: World) -> None:
        namespace = place(self.at)
        item = One(self.kind, self.source).item(world)
        for route in [one for (name, _), one in sorted(world.model.routes.items()) if name == namespace and item.kind in one.kinds]:
            world.advance(0.000001)
            event = world.model.write_legacy(namespace, item, route)
            EventRow.objects.insert_events([_legacy_row(world, event, route)])
            world.advance(0.000001)


def _legacy_row(world: World, event: Event, route: Route) -> tuple[object, ...]:
    facts, incarnation = world.facts_of(route), world.incarnations[route.pack][1]
    item = event.item
    inbound = InboundEvent(
        receipt_id=0,
        item=0,
        namespace=event.namespace,
        pack_id=facts.pack_id,
        pack_name=facts.pack_name,
        pack_incarnation=incarnation,
        route=facts,
        provider_kind=item.kind,
        source_type="contact",
        source_id=item.source,
        account=world.account_of(event.namespace),
        source_lane=item.lane,
        target_lane=route.target,
        delivery_id=item.delivery,
        delivery_key=world.delivery_key(event, route.key),
        provider_time=None,
        payload=item.payload,
        payload_sha256=sha256_text(item.payload),
    )
    return event_row(
        inbound,
        0,
        event.created,
        projection=world.projection_key(event),
        next_attempt_at=None,
        snapshot=facts.snapshot(),
        fenced=False,
    )


@dataclass(frozen=True, repr=False)
class OldBinaryLeases(Written):
    """An old binary starts to run an event that is still its own (4, Rolling upgrade)."""

    which: int = 0

    def take(self, world: World) -> None:
        model = world.model
        event = pick(
            [one for one in model.events if one in model.owned - model.legacy_results and not model.is_leased_by_old_binary(one)],
            self.which,
        )
        if event is not None:
            ends = model.now + LEASE
            rows = EventRow.objects.filter(id=world.event_ids[event.number], executor_owner="event")
            assert rows.update(lease_token="old", lease_expires_at=ends, status="processing") == 1
            model.legacy_leases[event] = ends


@dataclass(frozen=True, repr=False)
class OldBinaryEnds(Written):
    """An old binary finishes what it leases: a claim copies its result to the unclaimed item, nothing runs a second time."""

    which: int = 0

    def take(self, world: World) -> None:
        model = world.model
        event = pick([one for one in model.events if model.is_leased_by_old_binary(one)], self.which)
        if event is not None:
            rows = EventRow.objects.filter(id=world.event_ids[event.number], executor_owner="event")
            assert rows.update(status="processed", terminal_at=model.now, lease_token=None, lease_expires_at=None) == 1
            del model.legacy_leases[event]
            model.legacy_results.add(event)
