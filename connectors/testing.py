"""Tests of your own packs and flows on a real database: the product's own path, without HTTP, time or processes.

    from connectors.testing import assert_inputs, configure, deliver, drain, generations, settle

    @pytest.mark.django_db(transaction=True)          # committed data: the engine opens its own transactions
    def test_a_burst_is_booked_once():
        configure(Path("acme.toml").read_text())
        deliver("shop", {"events": [{"id": "7", "type": "order.changed"}]}, {"events": [{"id": "7", "type": "order.paid"}]})
        settle()
        drain()
        (generation,) = generations(("order", "7"))
        assert generation.state == "processed"
        assert_inputs(generation, {"id": "7", "type": "order.changed"}, {"id": "7", "type": "order.paid"})

Flows alone need none of this: `projection.testing.make_generation`. Never import this module outside tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction

from connectors.configuration import file
from connectors.configuration.apply import apply
from connectors.configuration.change import DEFAULT_NAMESPACE
from connectors.configuration.report import Report
from connectors.delivery import Headers, IngressRequest, Outcome
from connectors.flows import connections
from connectors.ingress import endpoint_facts, store
from connectors.registry import installed_packs
from connectors.routing import router
from projection.admission import activation
from projection.exact_json import NotJson, dump, parse
from projection.execution import worker
from projection.facts import Input, RouteFacts
from projection.inputs import ranges
from projection.leases import Claimed
from projection.models import Event, WorkItem


def configure(toml: str, *, actor: str = "test") -> Report:
    """Activate the protocol and apply a configuration text, as `config apply` would. Raises BadConfiguration.

    Also forgets what this process remembers of earlier tests' packs, endpoints and connections.
    """
    for cache in (endpoint_facts.find, installed_packs.of, connections.of):
        cache.forget()
    activation.forget()
    activation.activate(actor)
    return apply(file.parse(toml), actor=actor)


def deliver(
    endpoint: str, *bodies: Any, headers: Mapping[str, str] | None = None, namespace: str = DEFAULT_NAMESPACE
) -> list[Outcome]:
    """Store one delivery per body at endpoint `slug`, as after a good signature; what became of each.

    A body is the exact text (str), bytes, or a value that is written as JSON. Raises LookupError for an unknown endpoint.
    """
    facts = endpoint_facts.load((namespace, endpoint))
    if facts is None:
        raise LookupError(f"there is no endpoint {endpoint!r} in namespace {namespace!r}; configure() one first")
    sent = Headers({"content-type": "application/json", **(headers or {})})
    return [store.store_durably(facts, IngressRequest("POST", facts.url, sent, _bytes(body))) for body in bodies]


def _bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else dump(body)).encode()


def settle() -> int:
    """Route what was delivered, then act as if every settling time were over; number of items that had to wait."""
    router.drain_receipts()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE `_System_ConnectorEvent` SET NextAttemptAt = UTC_TIMESTAMP(6) WHERE NextAttemptAt > UTC_TIMESTAMP(6)"
        )
        cursor.execute(
            "UPDATE `_System_ConnectorWorkItem` SET RunAfter = UTC_TIMESTAMP(6) "
            "WHERE State IN ('pending', 'blocked') AND RunAfter > UTC_TIMESTAMP(6)"
        )
        return int(cursor.rowcount)


def drain() -> int:
    """Route and execute everything that is due now; number of attempts. What settles or waits for a retry stays."""
    router.drain_receipts()
    return worker.drain_claims()


def generations(source: tuple[str, str], *, flow: str | None = None) -> list[WorkItem]:
    """The work items of source (type, id), oldest first; only those of one flow (`crm.contact`) if given."""
    kind, id_ = source
    events = Event.objects.filter(source_type=kind, source_id=id_).values_list("id", flat=True)
    items = list(WorkItem.objects.filter(event_id__in=list(events)).order_by("lane_ordinal", "id"))
    return [item for item in items if flow in (None, f"{item.companion_pack}.{item.companion_flow}", item.companion_flow)]


def inputs_of(item: WorkItem) -> list[Input]:
    """The inputs that the item's flow is given, in order."""
    with transaction.atomic():
        (row,) = WorkItem.objects.lock_work_items([item.id])
    (selected,) = Event.objects.read_events([row.event_id])
    snapshot = Event.objects.values_list("route_snapshot", flat=True).get(id=row.event_id)
    return ranges.read_inputs([Claimed(row, selected, RouteFacts.from_snapshot(snapshot or ""))])[row.id]


def assert_inputs(item: WorkItem, *expected: Any) -> None:
    """Fail unless the item's inputs are exactly these, in this order: each the exact text (str), or the value of its JSON."""
    payloads = [each.payload for each in inputs_of(item)]
    told = [payload if isinstance(want, str) else _value(payload) for payload, want in zip(payloads, expected, strict=False)]
    if told != list(expected) or len(payloads) != len(expected):
        shown = "\n".join(f"  {payload}" for payload in payloads)
        raise AssertionError(f"{item.work_id} has {len(payloads)} inputs, expected {len(expected)}; its inputs in order:\n{shown}")


def _value(payload: str) -> Any:
    try:
        return parse(payload)
    except NotJson:
        return payload
