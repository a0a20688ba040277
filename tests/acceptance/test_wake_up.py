"""An idle system costs the database next to nothing, and is at work as soon as something arrives."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from statistics import median
from time import monotonic

import pytest

from connectors.bench.relay import Relay, relay
from ops_ui.config.database_url import database
from ops_ui.start.database_server import connect
from tests.acceptance.service import Service, service
from tests.support import signing
from tests.support.receiver import Receiver, receiving

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif("ssl=" in os.environ.get("HEADRACE_DATABASE_URL", ""), reason="nobody can count inside TLS"),
]

SECRET = "the secret of the GitHub webhook"
DELIVERIES = 10
LONGEST_START_SECONDS = 3.0
USUAL_START_SECONDS = 0.5
"""Two loops that only poll, each once a second, need 0.8 s on average."""
WATCHED_SECONDS = 5.0
MOST_COMMANDS_A_SECOND = 10
CONFIGURATION = """
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
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
"""


def relay_to(url: str) -> AbstractContextManager[Relay]:
    place = database(url)
    return relay(str(place["HOST"]), str(place["PORT"]))


@pytest.fixture(scope="module")
def counter() -> Iterator[Relay]:
    with relay_to(os.environ["HEADRACE_DATABASE_URL"]) as made:
        yield made


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture(scope="module")
def site(counter: Relay, receiver: Receiver) -> Iterator[Service]:
    with service(counter.url(os.environ["HEADRACE_DATABASE_URL"]), SECRET=SECRET, FORWARD_SECRET=signing.STANDARD_SECRET) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/builds")))
        made.start()
        yield made


def push(site: Service, name: str) -> float:
    """Post a delivery; the moment at which its receipt was known to be committed."""
    body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}).encode()
    headers = signing.github(body, SECRET, delivery=name) | {"Content-Type": "application/json"}
    status, _ = site.post("/ingress/default/code", body, headers)
    assert status == 202
    return monotonic()


def test_an_idle_system_starts_a_flow_soon_after_the_receipt(site: Service, receiver: Receiver) -> None:
    seconds = []
    for number in range(DELIVERIES):
        committed = push(site, f"delivery-{number}")
        receiver.requests.get(timeout=30)
        seconds.append(max(0.0, monotonic() - committed))
        site.until_idle()
    sys.stdout.write(f"from the receipt to the flow: median {median(seconds):.3f} s, longest {max(seconds):.3f} s\n")
    assert max(seconds) < LONGEST_START_SECONDS
    assert median(seconds) < USUAL_START_SECONDS


def test_an_idle_system_sends_few_statements(site: Service, counter: Relay) -> None:
    push(site, "the last one")
    site.until_idle()
    site.until(lambda: site.fetch("SELECT COUNT(*) FROM `django_q_ormq`") == [(3,)], "only the tasks of the running loops are left")
    before, since = counter.commands, monotonic()
    threading.Event().wait(WATCHED_SECONDS)  # nothing is awaited: what is measured is a time in which nothing happens
    rate = (counter.commands - before) / (monotonic() - since)
    sys.stdout.write(f"idle: {rate:.1f} statements a second\n")
    assert rate < MOST_COMMANDS_A_SECOND


def test_the_relay_counts_commands_and_nothing_else(site: Service) -> None:
    """The figure above stands on it."""
    with (
        relay_to(os.environ["HEADRACE_DATABASE_URL"]) as own,
        closing(connect(database(own.url(os.environ["HEADRACE_DATABASE_URL"])))) as connection,
        closing(connection.cursor()) as cursor,
    ):
        before = own.commands
        for _ in range(3):
            cursor.execute("SELECT %s", ["x" * 100_000])
        assert own.commands - before == 3
