"""The built-in flows behind real routes: from delivery to live record, and to a receiver that verifies."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from standardwebhooks.webhooks import Webhook

from connectors import http_client, secrets
from connectors.configuration import connections
from connectors.flows import connections as flow_connections
from connectors.flows.record_fold import properties_of
from connectors.models import AuditEntry, Connection, Receipt, Record
from connectors.testing import assert_inputs, configure, deliver, drain, generations, settle
from projection.database.clock import now
from projection.models import Destination, Event, WorkFailure, WorkItem
from projection.replay.decision import Replayed
from projection.replay.replay import replay
from tests.support.receiver import Receiver, Reply

pytestmark = pytest.mark.usefixtures("database")

SECRET = "whsec_" + base64.b64encode(b"a secret of the suite's receiver").decode()
GENERIC = """
[packs.generic]
settings = { signature = { kind = "none" }, items = "events", delivery_id = "key", kind = "kind", source_type = "'order'", \
source_id = "to_string(id)", lane = "join(':', ['order', to_string(id)])" }

[packs.generic.endpoint.shop]
"""
RECORDS = (
    GENERIC
    + """
[routes.order]
pack = "generic"
on = ["*"]
kind = "order.changed"
mode = "projection"
settle = "5s"
flow = "record_table"
"""
)
FORWARD = (
    GENERIC
    + """
[connections.crm]
url = "URL"
secret = "plain:SECRET"

[routes.forward]
pack = "generic"
on = ["*"]
kind = "order.changed"
mode = "projection"
flow = "http_forward"
connection = "crm"
retry = { base = "10s", cap = "100s", attempts = 3 }
"""
)


@pytest.fixture(autouse=True)
def _settings(settings: Any) -> Iterator[None]:
    settings.HEADRACE_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    http_client.close_clients()
    yield
    http_client.close_clients()


def values(source_id: str) -> dict[str, str]:
    return {name: held.text for name, held in properties_of(Record.objects.get(source_id=source_id).properties).items()}


def events(*texts: str) -> str:
    return f'{{"events": [{", ".join(texts)}]}}'


def test_big_ids_and_decimals_keep_every_digit_from_body_to_record() -> None:
    configure(RECORDS)
    ids = ["7615917337495251231", "7615917337495251232", "9007199254740993", "9007199254740992"]
    numbers = '"a": 10.10, "b": 12345678901234567.89, "c": 1E2, "d": 18446744073709551616'
    body = events(*(f'{{"id": {id}, "kind": "k", {numbers}}}' for id in ids))
    deliver("shop", body)
    settle()
    drain()
    assert bytes(Receipt.objects.get().body) == body.encode()
    assert sorted(Record.objects.values_list("source_id", flat=True)) == sorted(ids)
    for id in ids:
        kept = values(id)
        assert (kept["id"], kept["a"], kept["b"], kept["c"], kept["d"]) == (
            id, "10.10", "12345678901234567.89", "1E2", "18446744073709551616",
        )  # fmt: skip


def test_a_tie_in_provider_time_is_decided_by_ingress_order_and_no_input_is_lost() -> None:
    configure(RECORDS)
    told = [{"id": 1, "kind": "k", "status": status, "t": t} for status, t in (("open", 10), ("paid", 10), ("updated", 10))]
    told += [{"id": 1, "kind": "k", "status": "late", "t": 9}, {"id": 1, "kind": "k", "status": "timeless"}]
    deliver("shop", {"events": told[:3]}, {"events": told[3:4]}, {"events": told[4:]})
    settle()
    drain()
    (generation,) = generations(("order", "1"))
    assert_inputs(generation, *told)
    assert values("1") == {"id": "1", "kind": '"k"', "status": '"timeless"', "t": "9"}


def test_hubspot_changes_become_the_live_contact() -> None:
    configure(
        """
[packs.hubspot.endpoint.crm]
secrets = ["plain:secret"]

[routes.contact]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
flow = "record_table"
"""
    )

    def event(kind: str, number: int, **more: Any) -> dict[str, Any]:
        ids = {"portalId": 1, "subscriptionId": 2, "objectId": 42, "eventId": number, "occurredAt": 1_700_000_000_000 + number}
        return {**ids, "subscriptionType": f"contact.{kind}", "attemptNumber": 0, **more}

    def property_change(number: int, name: str, value: str) -> dict[str, Any]:
        return event("propertyChange", number, propertyName=name, propertyValue=value)

    deliver("crm", [event("creation", 1), property_change(2, "email", "a@example.com"), property_change(3, "amount", "10.10")])
    drain()
    deliver("crm", [property_change(4, "email", "b@example.com")], [event("deletion", 5)])
    drain()
    record = Record.objects.get()
    assert (record.source_type, record.source_id, record.deleted, record.event_count) == ("contact", "42", True, 5)
    assert values("42") == {"email": '"b@example.com"', "amount": '"10.10"'}
    deliver("crm", [event("restore", 6)], [event("deletion", 5, attemptNumber=3)])
    drain()
    assert not Record.objects.get().deleted
    assert Record.objects.get().event_count == 6


def test_a_merge_marks_the_records_that_went_into_another() -> None:
    configure(
        '[packs.hubspot.endpoint.crm]\nsecrets = ["plain:secret"]\n[routes.contact]\npack = "hubspot"\non = ["contact.*"]\n'
        'kind = "contact.changed"\nmode = "projection"\nflow = "record_table"\n'
    )
    ids = {"portalId": 1, "subscriptionId": 2, "eventId": 9, "occurredAt": 1_700_000_000_000, "subscriptionType": "contact.merge"}
    records = {"objectId": 1, "primaryObjectId": 1, "mergedObjectIds": [2, 3], "newObjectId": 4}
    deliver("crm", [{**ids, **records}])
    drain()
    merged = dict(Record.objects.values_list("source_id", "merged_into"))
    assert merged == {"1": "4", "2": "4", "3": "4", "4": None}


def test_a_payload_that_cannot_be_folded_fails_alone_and_its_replay_does_not_turn_time_back() -> None:
    configure(RECORDS.replace('flow = "record_table"', 'flow = "record_table"\nretry = { attempts = 1 }'))
    deliver("shop", events('{"id": 1, "kind": "k", "a": 1}', '{"id": 2, "kind": "k", "a": 1}'))
    settle()
    # A stored payload is damaged, as no ingress would let it in.
    Event.objects.filter(source_id="1").update(payload='{"id": 1, "a": NaN}')
    drain()
    assert [item.state for item in generations(("order", "1"))] == ["dead"]
    assert [item.state for item in generations(("order", "2"))] == ["processed"]
    assert re.search(r"event \d+ of order:1: NaN is not JSON", WorkFailure.objects.get().error)
    deliver("shop", events('{"id": 1, "kind": "k", "a": "newer"}'))
    settle()
    drain()
    Event.objects.filter(source_id="1", payload__contains="NaN").update(payload='{"id": 1, "a": "older", "b": 1}')
    assert isinstance(replay(generations(("order", "1"))[0].work_id, actor="test", reason="repaired"), Replayed)
    drain()
    assert (values("1")["a"], values("1")["b"]) == ('"newer"', "1")


def forwarding(receiver: Receiver) -> None:
    configure(FORWARD.replace("URL", receiver.url("/in")).replace("SECRET", SECRET))


def test_a_replay_arrives_with_the_time_of_the_fact_beside_its_ordinal(receiver: Receiver) -> None:
    """A receiver that orders by either must not go backwards."""
    configure(FORWARD.replace("URL", receiver.url("/in")).replace("SECRET", SECRET).replace("attempts = 3", "attempts = 1"))
    receiver.replies.put(Reply(404))
    deliver("shop", events('{"id": 1, "kind": "created"}'))
    drain()
    first = json.loads(receiver.requests.get(timeout=5).body)
    dead = generations(("order", "1"))[0]
    for _ in range(2):  # the second is a replay of a replay
        receiver.replies.put(Reply(404))
        assert isinstance(replay(dead.work_id, actor="test", reason="again"), Replayed)
        drain()
        again = json.loads(receiver.requests.get(timeout=5).body)
        assert again["data"]["work_id"] != first["data"]["work_id"]
        assert (again["timestamp"], again["data"]["inputs"][0]["ordinal"]) == (
            first["timestamp"],
            first["data"]["inputs"][0]["ordinal"],
        )


def test_a_generation_arrives_once_signed_with_all_of_its_inputs(receiver: Receiver) -> None:
    forwarding(receiver)
    deliver("shop", events('{"id": 1, "kind": "created", "n": 1.50}', '{"id": 1, "kind": "paid"}'))
    drain()
    (generation,) = generations(("order", "1"))
    assert generation.state == "processed"
    arrived = receiver.requests.get(timeout=5)
    Webhook(SECRET).verify(arrived.body, dict(arrived.headers))
    assert arrived.headers["webhook-id"] == generation.work_id
    assert b'"payload":{"id": 1, "kind": "created", "n": 1.50}' in arrived.body
    assert [each["kind"] for each in json.loads(arrived.body)["data"]["inputs"]] == ["created", "paid"]
    assert receiver.requests.empty()


def test_410_is_dead_at_once_and_the_next_generation_goes_on(receiver: Receiver) -> None:
    forwarding(receiver)
    receiver.replies.put(Reply(410))
    for number in (1, 2):
        deliver("shop", events(f'{{"id": 1, "kind": "k", "n": {number}}}'))
        drain()
    assert [(item.state, item.attempts) for item in generations(("order", "1"))] == [("dead", 1), ("processed", 1)]


@pytest.mark.parametrize(("retry_after", "seconds"), [("50", 50.0), ("7000", 100.0)])
def test_retry_after_moves_the_next_attempt_within_the_cap(receiver: Receiver, retry_after: str, seconds: float) -> None:
    forwarding(receiver)
    receiver.reply = Reply(503, {"retry-after": retry_after})
    deliver("shop", events('{"id": 1, "kind": "k"}'))
    started = now()
    drain()
    (generation,) = generations(("order", "1"))
    assert generation.state == "retry"
    assert timedelta(seconds=seconds - 1) <= generation.run_after - started <= timedelta(seconds=seconds + 20)
    assert "answered 503" in WorkFailure.objects.get().error


def test_an_ordinary_failure_follows_the_policy_of_the_route(receiver: Receiver) -> None:
    forwarding(receiver)
    receiver.reply = Reply(404, body=b"no such hook")
    deliver("shop", events('{"id": 1, "kind": "k"}'))
    drain()
    (generation,) = generations(("order", "1"))
    assert (generation.state, generation.attempts) == ("retry", 1)
    assert "answered 404 (no such hook)" in (generation.last_error or "")
    assert SECRET not in (generation.last_error or "")


def test_a_connection_that_is_gone_is_named(receiver: Receiver) -> None:
    forwarding(receiver)
    Connection.objects.all().delete()
    deliver("shop", events('{"id": 1, "kind": "k"}'))
    drain()
    assert "there is no connection 'crm'" in WorkFailure.objects.get().error
    assert receiver.requests.empty()


def test_a_private_address_is_refused_in_production_settings(receiver: Receiver, settings: Any) -> None:
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = []
    forwarding(receiver)
    deliver("shop", events('{"id": 1, "kind": "k"}'))
    drain()
    assert "HEADRACE_FORWARD_ALLOWED_NETWORKS" in WorkFailure.objects.get().error
    assert receiver.connections == 0


def test_a_disabled_connection_posts_nothing_and_uses_no_attempts_until_it_is_enabled(receiver: Receiver) -> None:
    forwarding(receiver)
    who = {"actor": "ann", "reason": "their migration"}
    assert connections.set_disabled("default", "crm", True, **who)
    assert not connections.set_disabled("default", "crm", True, **who)
    deliver("shop", events(*(f'{{"id": {number}, "kind": "k"}}' for number in range(8))))
    drain()
    assert receiver.requests.empty()
    waiting = list(WorkItem.objects.all())
    assert {(one.state, one.attempts) for one in waiting} <= {("retry", 0), ("pending", 0)}
    assert "connection 'crm' is disabled" in Destination.objects.get().last_error
    assert connections.set_disabled("default", "crm", False, **who)
    flow_connections.of.forget()
    WorkItem.objects.filter(state="retry").update(run_after=now())
    drain()
    assert {one.state for one in WorkItem.objects.all()} == {"processed"}
    assert [entry.action for entry in AuditEntry.objects.filter(actor="ann").order_by("id")] == [
        "connection.disable",
        "connection.enable",
    ]


def test_a_cached_connection_signs_without_a_secret_that_has_ended(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    forwarding(receiver)
    ends = now() + timedelta(hours=1)
    entries = [{"secret": "new", "expires_at": None}, {"secret": "old", "expires_at": ends.isoformat()}]
    Connection.objects.update(secrets=secrets.encrypt(entries))
    assert flow_connections.of(("default", "crm")).secrets == ("new", "old")

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return ends.astimezone(tz)

    monkeypatch.setattr(flow_connections, "datetime", Later)
    assert flow_connections.of(("default", "crm")).secrets == ("new",)
