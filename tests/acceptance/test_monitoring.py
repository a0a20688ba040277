"""A running system under its own eyes: what it exports is what is documented, and whoever asked for it is told of alerts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from standardwebhooks.webhooks import Webhook

from ops_ui.monitoring import counter_file, counter_files
from tests.acceptance.service import PATIENCE_SECONDS, Service, service
from tests.support import monitoring_files, signing
from tests.support.monitoring_files import documented, uses
from tests.support.receiver import Receiver, Reply, receiving

pytestmark = pytest.mark.acceptance

SECRET = "a secret of the provider"
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
spool = false
[packs.hubspot.endpoint.crm]
public_url = "https://hooks.example.com"
secrets = ["env:SECRET"]
[connections.builds]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.contact]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
flow = "record_table"
[routes.forward]
pack = "github"
on = ["*"]
kind = "repository.event"
mode = "per_event"
flow = "http_forward"
connection = "builds"
retry = {{ base = "1s", attempts = 2 }}
"""
NEEDS_MORE = {"headrace_spooled_total", "headrace_spool_drained_total", "headrace_demo_forwarded_total"}
"""Have no series before the database was away, or without the demo; their labels are tested where they are registered."""

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture(scope="module")
def site(receiver: Receiver) -> Iterator[Service]:
    settings = {
        "SECRET": SECRET,
        "FORWARD_SECRET": signing.STANDARD_SECRET,
        "HEADRACE_ALERT_URL": receiver.url("/alerts"),
        "HEADRACE_ALERT_SECRET": signing.STANDARD_SECRET,
        "HEADRACE_ALERT_SIGNATURE_FAILURES": "3",
    }
    with service(**settings) as made:
        counters = made.folder / "metrics"
        counters.mkdir()
        made.environment[counter_file.VARIABLE] = str(counters)
        made.configure(CONFIGURATION.format(url=receiver.url("/builds")))
        made.start()
        yield made


def push(site: Service, delivery: str, *, after: str = "1", secret: str = SECRET) -> int:
    body = json.dumps({"ref": "refs/heads/main", "after": after, "repository": {"id": 7}}).encode()
    headers = signing.github(body, secret, delivery=delivery) | {"Content-Type": "application/json"}
    return site.post("/ingress/default/code", body, headers)[0]


def contact(site: Service) -> int:
    event = {
        "eventId": 1,
        "subscriptionType": "contact.creation",
        "objectId": 42,
        "portalId": 1,
        "occurredAt": 1,
        "attemptNumber": 0,
    }
    body = json.dumps([event | {"subscriptionId": 1, "appId": 1}]).encode()
    headers = signing.hubspot_v3(body, SECRET, "https://hooks.example.com/ingress/default/crm") | {
        "Content-Type": "application/json"
    }
    return site.post("/ingress/default/crm", body, headers)[0]


@pytest.fixture(scope="module")
def series(site: Service, receiver: Receiver) -> Series:
    """What `/metrics` says after a little of everything."""
    for _ in range(2):
        receiver.replies.put(Reply(500))  # attempts = 2: retried, then dead
    statuses = [
        push(site, "one"),
        push(site, "one"),
        push(site, "one", after="2"),
        *(push(site, "x", secret="wrong") for _ in range(3)),
    ]
    assert statuses == [202, 200, 409, 401, 401, 401]
    assert contact(site) == 202
    assert site.post("/ingress/default/nowhere", b"{}", {})[0] == 404
    site.until_idle()
    assert push(site, "two") == 202
    site.until_idle()
    return scrape(site)


def scrape(site: Service) -> Series:
    status, text = site.request("GET", "/metrics", headers={"Host": "localhost"})
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def families(site: Service) -> set[str]:
    """The names as the page's `# TYPE` lines give them."""
    _, text = site.request("GET", "/metrics", headers={"Host": "localhost"})
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


def labels_of(series: Series, name: str) -> set[frozenset[str]]:
    names = {name, f"{name}_count"}
    return {frozenset(label for label, _ in labels) for found, labels in series if found in names}


def test_what_is_exported_is_documented_and_the_other_way_round(site: Service, series: Series) -> None:
    assert families(site) == set(documented())
    for name, labels in documented().items():
        expected = set() if name in NEEDS_MORE else {labels}
        assert labels_of(series, name) == expected, name


def test_every_series_that_the_examples_ask_for_is_there(series: Series) -> None:
    names = {name for name, _ in series}
    values = {(name, pair) for name, labels in series for pair in labels}
    for expression in monitoring_files.expressions():
        for use in uses(expression.text):
            if use.metric not in NEEDS_MORE:
                assert use.metric in names, expression
                assert {(use.metric, pair) for pair in use.values} <= values, expression


def test_the_numbers_are_those_of_all_processes(series: Series) -> None:
    def value(name: str, **labels: str) -> float:
        return series[name, frozenset(labels.items())]

    assert value("headrace_received_total", pack="github") == 2
    assert value("headrace_duplicates_total", pack="github") == 1
    assert value("headrace_conflicts_total", pack="github") == 1
    assert value("headrace_unverified_total", pack="github") == 3
    assert value("headrace_refused_total", code="not_found") == 1
    assert value("headrace_accept_seconds_count", pack="github") == 3
    assert value("headrace_admitted_events_total", namespace="default") == 3
    route = {"namespace": "default", "route": "forward"}
    assert value("headrace_attempts_total", outcome="retry", **route) == 1
    assert value("headrace_attempts_total", outcome="dead", **route) == 1
    assert value("headrace_attempts_total", outcome="processed", **route) == 1
    assert value("headrace_generation_events_sum", namespace="default", route="contact") == 1
    assert value("headrace_dead_letters") == 1
    assert value("headrace_database_up") == 1
    assert value("headrace_workers_alive", kind="worker") == 2


def test_it_says_that_it_progresses(site: Service, series: Series) -> None:
    assert site.request("GET", "/progressz", headers={"Host": "localhost"}) == (200, {"progressing": True})
    assert site.manage("health") == {"ready": True, "progressing": True, "reasons": []}


def test_failed_signatures_are_told_by_a_signed_webhook(site: Service, series: Series, receiver: Receiver) -> None:
    while True:
        received = receiver.requests.get(timeout=2 * PATIENCE_SECONDS)
        if received.path == "/alerts":
            break
    Webhook(signing.STANDARD_SECRET).verify(received.body, dict(received.headers))
    data = json.loads(received.body)["data"]
    assert (data["alert"], "default/code" in data["reason"]) == ("signature_failures", True)


def test_restarts_leave_no_counter_files_behind_and_lose_no_number(site: Service, series: Series) -> None:
    counters = Path(site.environment[counter_file.VARIABLE])
    before = series["headrace_received_total", frozenset({("pack", "github")})]
    pushes = 0
    for _ in range(2):
        for process in site.processes:
            if process.is_alive():
                process.ask_to_stop()
                process.wait()
        site.start()
        assert push(site, uuid.uuid4().hex) == 202
        pushes += 1
    site.until_idle()
    assert scrape(site)["headrace_received_total", frozenset({("pack", "github")})] == before + pushes
    owners = {path.stem.rpartition("_")[2] for path in counters.glob("counter_*.db")}
    living = {owner for owner in owners if owner != counter_files.ENDED and Path(f"/proc/{owner}").exists()}
    assert owners == living | {counter_files.ENDED}
