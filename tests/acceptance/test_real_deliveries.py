"""Every sample of HubSpot and GitHub through the running product: stored once, folded right, forwarded once, and again: nothing."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pytest
from standardwebhooks import Webhook

from connectors import pack
from connectors.delivery import Headers, Inbound, IngressRequest
from connectors.demo import samples as demo_samples
from tests.acceptance import hubspot_shapes
from tests.acceptance.service import Service, service
from tests.support import samples, signing
from tests.support.receiver import Received, Receiver, receiving

pytestmark = pytest.mark.acceptance

PUBLIC_URL = "https://hooks.example.com"
HUBSPOT_SECRET = "the secret of the HubSpot app"
GITHUB_SECRET = "the secret of the GitHub webhook"
TYPES = ("contact", "company", "deal", "ticket")
ROUTES = {
    "hubspot": {name: [f"{name}.*", f"workflow.{name}"] for name in TYPES},
    "github": {"forward": ["*"], "pushes": ["push"]},
}
"""Pack → route → the provider kinds that it takes."""
CONFIGURATION = """
namespace = "{namespace}"
[packs.hubspot.endpoint.crm]
signature = "hubspot"
public_url = "https://hooks.example.com"
secrets = ["env:HUBSPOT_SECRET"]
[packs.github.endpoint.code]
secrets = ["env:GITHUB_SECRET"]
[connections.builds]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.forward]
pack = "github"
on = ["*"]
kind = "repository.event"
mode = "per_event"
flow = "http_forward"
connection = "builds"
[routes.pushes]
pack = "github"
on = ["push"]
kind = "repository.pushed"
mode = "per_event"
flow = "log"
"""
RECORD_ROUTE = """
[routes.{name}]
pack = "hubspot"
on = ["{name}.*", "workflow.{name}"]
kind = "{name}.changed"
mode = "projection"
settle = "200ms"
flow = "record_table"
"""


@dataclass(frozen=True)
class Delivery:
    """One request of a provider, before it is signed."""

    provider: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Tenant:
    """One namespace of the running product, fed with one set of deliveries."""

    site: Service
    namespace: str
    receiver: Receiver
    deliveries: list[Delivery]
    forwarded: list[Received] = field(default_factory=list)

    def post(self, delivery: Delivery) -> tuple[int, Any]:
        path = f"/ingress/{self.namespace}/{'crm' if delivery.provider == 'hubspot' else 'code'}"
        return self.site.post(path, delivery.body, {**delivery.headers, **signature(delivery, PUBLIC_URL + path)})

    def rows(self, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
        sql = f"SELECT {columns} FROM `_System_Connector{table}` WHERE Namespace = %s ORDER BY Id"
        return self.site.fetch(sql, self.namespace)

    def take_forwarded(self) -> None:
        while not self.receiver.requests.empty():
            self.forwarded.append(self.receiver.requests.get_nowait())


def signature(delivery: Delivery, url: str) -> dict[str, str]:
    """As the provider signs these very bytes: HubSpot's workflow actions by version 2, its webhooks by version 3."""
    if delivery.provider == "github":
        return {"X-Hub-Signature-256": "sha256=" + signing.hmac_hex(delivery.body, GITHUB_SECRET)}
    if delivery.body.startswith(b"["):
        return signing.hubspot_v3(delivery.body, HUBSPOT_SECRET, url)
    return signing.hubspot_v2(delivery.body, HUBSPOT_SECRET, url)


DROPPED = {"host", "content-length", "connection", "accept-encoding"}
RESIGNED = {"x-hubspot-request-timestamp", "x-hubspot-signature-version", "x-hubspot-signature", "x-hubspot-signature-v3"}


def delivery_of(provider: str, name: str, headers: Mapping[str, str], body: bytes) -> Delivery:
    kept = {key.lower(): value for key, value in headers.items() if key.lower() not in DROPPED | RESIGNED}
    kept.setdefault("content-type", "application/json")
    if provider == "github":  # samples that were collected without transport headers get the one that every delivery has
        kept.setdefault("x-github-delivery", str(uuid.uuid5(uuid.NAMESPACE_URL, name)))
    return Delivery(provider, kept, body)


def shared() -> list[Delivery]:
    return [
        delivery_of(provider, sample.name, sample.headers, sample.body)
        for provider in ("hubspot", "github")
        for sample in samples.samples(provider)
    ]


def written_by_hand() -> list[Delivery]:
    github = [(headers, body) for headers, body in demo_samples.read("github")]
    hubspot = [*hubspot_shapes.DELIVERIES, *demo_samples.read("hubspot")]
    found = [("hubspot", *one) for one in hubspot] + [("github", *one) for one in github]
    return [delivery_of(provider, str(number), *one) for number, (provider, *one) in enumerate(found)]


@pytest.fixture(scope="module")
def site() -> Iterator[Service]:
    secrets = {"HUBSPOT_SECRET": HUBSPOT_SECRET, "GITHUB_SECRET": GITHUB_SECRET, "FORWARD_SECRET": signing.STANDARD_SECRET}
    with service(**secrets) as made:
        made.start()
        yield made


@pytest.fixture(
    scope="module",
    params=[pytest.param(written_by_hand, id="hand"), pytest.param(shared, id="shared", marks=samples.needs_samples)],
)
def tenant(request: pytest.FixtureRequest, site: Service) -> Iterator[Tenant]:
    """A namespace of its own into which everything was posted once, one delivery after the other."""
    name = request.param.__name__.replace("_", "-")
    with receiving() as receiver:
        routes = "".join(RECORD_ROUTE.format(name=one) for one in TYPES)
        site.configure(CONFIGURATION.format(namespace=name, url=receiver.url("/builds")) + routes)
        made = Tenant(site, name, receiver, request.param())
        answers = [made.post(delivery)[0] for delivery in made.deliveries]
        assert answers == expected_answers(made.deliveries)
        site.until_idle()
        made.take_forwarded()
        yield made


# ---- what must come of it, from the deliveries alone


def expected_answers(deliveries: list[Delivery]) -> list[int]:
    """202 for news; GitHub names its requests, so 200 for the same body under a known name and 409 for another one."""
    first: dict[str, bytes] = {}
    answers = []
    for delivery in deliveries:
        name = delivery.headers.get("x-github-delivery", str(uuid.uuid4()))
        known = first.setdefault(name, delivery.body)
        answers.append(202 if known is delivery.body else 200 if known == delivery.body else 409)
    return answers


@dataclass(frozen=True)
class ExpectedEvent:
    route: str | None
    kind: str
    source: tuple[str, str]
    payload: str


def distinct_items(tenant: Tenant) -> dict[tuple[str, str], tuple[Inbound, str, Any]]:
    """(provider, delivery id) → what the pack reads, its exact text and its value; the first of several with one id stands."""
    found: dict[tuple[str, str], tuple[Inbound, str, Any]] = {}
    for delivery in tenant.deliveries:
        cls = pack.find(delivery.provider)
        assert cls is not None
        one = cls()
        for item in one.split_request(IngressRequest("POST", PUBLIC_URL, Headers(delivery.headers), delivery.body)):
            try:
                read = one.read(item)
            except ValueError:
                continue  # an unreadable item keeps its siblings
            for inbound in [read] if isinstance(read, Inbound) else read:
                assert inbound.delivery_id, "posting it again could not be told from news"
                found.setdefault((delivery.provider, inbound.delivery_id), (inbound, item.text, item.value))
    return found


def expected_events(tenant: Tenant) -> Counter[ExpectedEvent]:
    found: Counter[ExpectedEvent] = Counter()
    for (provider, _), (inbound, text, _) in distinct_items(tenant).items():
        routes = [name for name, kinds in ROUTES[provider].items() if any(fnmatchcase(inbound.kind, kind) for kind in kinds)]
        source = (inbound.source[0], str(inbound.source[1]))
        found.update(ExpectedEvent(route, inbound.kind, source, text) for route in routes or [None])
    return found


def expected_records(tenant: Tenant) -> hubspot_shapes.Records:
    """Distinct HubSpot events, in the order in which they were posted, folded by the documented rules."""
    values: dict[int, Any] = {}  # a merge is one item and several events
    for (provider, _), (_, _, value) in distinct_items(tenant).items():
        if provider == "hubspot":
            values.setdefault(id(value), value)
    records = hubspot_shapes.fold(values.values())
    return {key: record for key, record in records.items() if key[1] in TYPES}


# ---- what came of it


def test_each_event_is_stored_once_with_its_exact_text(tenant: Tenant) -> None:
    routes = dict(tenant.site.fetch("SELECT Id, RouteKey FROM `_System_ConnectorRoute`"))
    rows = tenant.rows("Event", "RouteId, ProviderKind, SourceType, SourceId, Payload, EnqueueOrdinal")
    stored = Counter(ExpectedEvent(routes.get(route), kind, (of, one), payload) for route, kind, of, one, payload, _ in rows)
    assert stored == expected_events(tenant)
    assert [row[-1] for row in rows] == list(range(1, len(rows) + 1))


def test_each_record_is_the_fold_of_its_changes(tenant: Tenant) -> None:
    columns = "EventKind, SourceLane, SourceType, SourceId, Properties, Deleted, MergedInto, EventCount"
    stored = {}
    for kind, lane, of, one, properties, deleted, merged_into, count in tenant.rows("Record", columns):
        assert kind == f"{of}.changed"
        values = {name: held["value"] for name, held in json.loads(properties).items()}
        stored[lane.partition(":")[0], of, one] = hubspot_shapes.ExpectedRecord(values, bool(deleted), merged_into, count)
    assert stored == expected_records(tenant)


def test_each_github_delivery_is_forwarded_once_signed_and_verified(tenant: Tenant) -> None:
    expected = {name: text for (provider, name), (_, text, _) in distinct_items(tenant).items() if provider == "github"}
    arrived = Counter(json.loads(one.body)["data"]["inputs"][0]["delivery_id"] for one in tenant.forwarded)
    assert arrived == Counter(expected.keys())
    assert len({one.headers["webhook-id"] for one in tenant.forwarded}) == len(tenant.forwarded)
    for one in tenant.forwarded:
        message = Webhook(signing.STANDARD_SECRET).verify(one.body, dict(one.headers))
        (only,) = message["data"]["inputs"]
        assert f'"payload":{expected[only["delivery_id"]]}'.encode() in one.body
        assert (one.path, message["data"]["work_id"]) == ("/builds", one.headers["webhook-id"])


def test_all_work_is_processed_at_the_first_attempt(tenant: Tenant) -> None:
    assert {row[:2] for row in tenant.rows("WorkItem", "State, Attempts")} == {("processed", 1)}
    assert {row[0] for row in tenant.rows("Receipt", "State")} <= {"routed", "partial", "conflict"}


def test_posting_all_again_changes_nothing(tenant: Tenant) -> None:
    tables = ("Event", "WorkItem", "Record")
    before = {table: tenant.rows(table) for table in tables}
    failures = tenant.site.table("WorkFailure")
    answers = [tenant.post(delivery)[0] for delivery in tenant.deliveries]
    conflicts = [answer == 409 for answer in expected_answers(tenant.deliveries)]
    assert answers == [
        202 if delivery.provider == "hubspot" else 409 if conflict else 200
        for delivery, conflict in zip(tenant.deliveries, conflicts, strict=True)
    ]
    tenant.site.until_idle()
    assert {table: tenant.rows(table) for table in tables} == before
    assert tenant.site.table("WorkFailure") == failures
    assert tenant.receiver.requests.empty()


def test_an_unreadable_item_keeps_its_siblings(tenant: Tenant) -> None:
    numbers = 990_001, 990_002
    good = [hubspot_shapes.changed(number, "contact", number, "city", "Ålesund") for number in numbers]
    bad = hubspot_shapes.changed(990_003, "contact", 0, "city", "nowhere") | {"objectId": None}
    status, answer = tenant.post(Delivery("hubspot", {}, hubspot_shapes.body(good[0], bad, good[1])))
    assert status == 202
    tenant.site.until_idle()
    columns = "State, ItemCount, EventCount, RejectedCount, Verdicts"
    ((*counts, verdicts),) = tenant.site.fetch(f"SELECT {columns} FROM `_System_ConnectorReceipt` WHERE Id = %s", answer["receipt"])
    assert counts == ["partial", 3, 2, 1]
    ((item, code, reason),) = [(one["item"], one["code"], one["reason"]) for one in json.loads(verdicts)]
    assert (item, code) == (1, "unreadable")
    assert "objectId" in reason
    cities = [
        json.loads(row[1])["city"]["value"] for row in tenant.rows("Record", "SourceId, Properties") if int(row[0]) in numbers
    ]
    assert cities == ["Ålesund"] * 2


def test_a_forged_delivery_is_refused_and_stored_nowhere(tenant: Tenant) -> None:
    before = len(tenant.rows("Receipt", "Id"))
    path = f"/ingress/{tenant.namespace}/code"
    forged = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "forged", "X-Hub-Signature-256": "sha256=" + "0" * 64}
    status, answer = tenant.site.post(path, b"{}", forged)
    assert (status, answer["code"]) == (401, "unverified")
    assert len(tenant.rows("Receipt", "Id")) == before


def test_the_audit_of_it_all_is_clean(tenant: Tenant) -> None:
    tenant.site.assert_audit_is_clean()
