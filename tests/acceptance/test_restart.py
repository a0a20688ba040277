"""Everything is killed in the middle of its work: nothing is lost, and nothing is applied twice."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from tests.acceptance import hubspot_shapes
from tests.acceptance.private_server import IS_INSTALLED, PrivateServer, private_server
from tests.acceptance.service import PATIENCE_SECONDS, POLL_SECONDS, Service, service
from tests.support import signing
from tests.support.receiver import Receiver, Reply

pytestmark = pytest.mark.acceptance

LEASE_SECONDS = 3
SLACK_SECONDS = 5.0
"""For a busy machine: what recovery may take beside the lease."""
SECRET = "a secret of either provider"
CONTACTS = range(1, 21)
ROUNDS = 12
CONFIGURATION = """
[packs.hubspot.endpoint.crm]
public_url = "https://hooks.example.com"
secrets = ["env:SECRET"]
[packs.github.endpoint.code]
secrets = ["env:SECRET"]
[connections.builds]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.contact]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
settle = "50ms"
flow = "record_table"
[routes.forward]
pack = "github"
on = ["*"]
kind = "repository.event"
mode = "per_event"
flow = "http_forward"
connection = "builds"
"""


class Provider:
    """Posts as providers do: again and again until a 2xx."""

    def __init__(self, site: Service) -> None:
        self._site = site
        self.given_up = threading.Event()
        self.refusals: Counter[str] = Counter()

    def contacts(self, *events: dict[str, object]) -> None:
        body = hubspot_shapes.body(*events)
        self._until_taken("/ingress/default/crm", body)

    def push(self, name: str) -> None:
        body = json.dumps({"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}).encode()
        self._until_taken("/ingress/default/code", body, {"X-GitHub-Event": "push", "X-GitHub-Delivery": name})

    def _until_taken(self, path: str, body: bytes, github: dict[str, str] | None = None) -> None:
        while not self.given_up.is_set():
            signed = signing.hubspot_v3(body, SECRET, f"https://hooks.example.com{path}")
            if github is not None:
                signed = github | {"X-Hub-Signature-256": "sha256=" + signing.hmac_hex(body, SECRET)}
            try:
                status, _ = self._site.post(path, body, {"Content-Type": "application/json", **signed})
            except OSError as error:  # the web server was killed before its answer: did it store the delivery, or not?
                self.refusals[type(error).__name__] += 1
            else:
                if status in (200, 202):
                    return
                self.refusals[str(status)] += 1
            sleep(POLL_SECONDS)


def change(contact: int, turn: int) -> dict[str, object]:
    return hubspot_shapes.changed(1000 * turn + contact, "contact", contact, "turn", str(turn))


@pytest.fixture
def server() -> Iterator[PrivateServer | None]:
    """A server of the test's own where MariaDB is installed and the suite runs on MariaDB; None = the suite's server stays up."""
    if not (IS_INSTALLED and os.environ["HEADRACE_DATABASE_URL"].startswith(("mysql", "mariadb"))):
        yield None
        return
    with private_server() as made:
        yield made


@pytest.fixture
def site(server: PrivateServer | None, receiver: Receiver) -> Iterator[Service]:
    with service(server.url if server else None, SECRET=SECRET, FORWARD_SECRET=signing.STANDARD_SECRET) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/builds")))
        yield made


class Background:
    """A provider that posts its rounds in a thread of its own: two at once, the others from the moment that `go_on` is set, and the
    last one when all is said and done (`finish`)."""

    def __init__(self, site: Service) -> None:
        self.provider = Provider(site)
        self.go_on = threading.Event()
        self._is_last = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._posted = self._thread.submit(self._post)

    def _post(self) -> None:
        for turn in range(1, ROUNDS):
            if turn > 2:
                self.go_on.wait(PATIENCE_SECONDS)
            if turn == ROUNDS - 1:
                self._is_last.wait(2 * PATIENCE_SECONDS)
            for contact in CONTACTS[::2]:
                self.provider.contacts(change(contact, turn), change(contact + 1, turn))

    def finish(self) -> None:
        """Let it post the last round, and wait until all is posted. Raises what went wrong in the thread."""
        self._is_last.set()
        self._posted.result(PATIENCE_SECONDS)

    def close(self) -> None:
        self.provider.given_up.set()
        self.go_on.set()
        self._is_last.set()
        self._thread.shutdown()


@pytest.fixture
def background(site: Service) -> Iterator[Background]:
    """Made once the first round is processed, so that each record exists."""
    site.start(HEADRACE_LEASE_SECONDS=str(LEASE_SECONDS))
    for contact in CONTACTS:
        Provider(site).contacts(change(contact, 0))
    site.until_idle()
    made = Background(site)
    yield made
    made.close()


def assert_each_change_is_in_its_record_once(site: Service) -> None:
    assert site.fetch("SELECT COUNT(*) FROM `_System_ConnectorEvent` WHERE SourceType = 'contact'") == [(ROUNDS * len(CONTACTS),)]
    rows = site.fetch("SELECT SourceId, EventCount, Properties FROM `_System_ConnectorRecord`")
    found = {int(source): (count, json.loads(properties)["turn"]["value"]) for source, count, properties in rows}
    assert found == {contact: (ROUNDS, str(ROUNDS - 1)) for contact in CONTACTS}
    states = site.fetch("SELECT DISTINCT State FROM `_System_ConnectorWorkItem`")
    assert states == [("processed",)]
    site.assert_audit_is_clean()


def test_killing_everything_in_the_middle_loses_and_repeats_nothing(
    site: Service, server: PrivateServer | None, receiver: Receiver, background: Background
) -> None:
    web, cluster = site.processes
    answer = threading.Event()
    receiver.reply = Reply(wait=lambda: answer.wait(PATIENCE_SECONDS))
    # A stranger's lock on one record, and a receiver that does not answer: both flows are in the middle of their work.
    stranger = site.new_connection()
    stranger.begin()
    stranger.cursor().execute("SELECT Id FROM `_System_ConnectorRecord` WHERE SourceId = '7' FOR UPDATE")
    background.provider.contacts(change(7, 1))
    background.provider.push("in-flight")
    running = "SELECT CompanionFlow, WorkId FROM `_System_ConnectorWorkItem` WHERE State = 'processing'"
    site.until(lambda: {"record_table", "http_forward"} <= {row[0] for row in site.fetch(running)}, "both flows run")
    site.until(lambda: not receiver.requests.empty(), "the forward is under way")

    cluster.kill()
    interrupted = {work_id for _, work_id in site.fetch(running)}
    background.go_on.set()
    site.until(lambda: site.fetch("SELECT 1 FROM `_System_ConnectorReceipt` WHERE State = 'pending' LIMIT 1"), "deliveries wait")
    web.kill()
    if server is not None:
        server.crash()
        server.start()
    stranger.close()

    receiver.reply = Reply()
    answer.set()
    site.start(HEADRACE_LEASE_SECONDS=str(LEASE_SECONDS))
    done = f"SELECT WorkId FROM `_System_ConnectorWorkItem` WHERE State = 'processed' AND WorkId IN ({'%s, ' * len(interrupted)}'')"
    site.until(
        lambda: {row[0] for row in site.fetch(done, *interrupted)} == interrupted,
        "the interrupted lanes move again within a lease",
        LEASE_SECONDS + SLACK_SECONDS,
    )
    background.finish()
    site.until_idle()
    assert_each_change_is_in_its_record_once(site)
    rescued = site.fetch("SELECT WorkId, Attempt, Outcome FROM `_System_ConnectorWorkFailure`")
    assert {(work_id, 1, "rescued") for work_id in interrupted} == set(rescued)
    # A flow that calls the network is repeated, under the same id, by which the receiver knows it.
    forwarded = [receiver.requests.get_nowait() for _ in range(receiver.requests.qsize())]
    assert len(forwarded) == 2
    assert len({one.headers["webhook-id"] for one in forwarded}) == 1


def test_the_running_service_outlives_a_crash_of_its_database(
    site: Service, server: PrivateServer | None, receiver: Receiver, background: Background
) -> None:
    if server is None:
        pytest.skip("the suite's own server is not ours to kill, and MariaDB is not installed here")
    background.provider.push("before")
    server.crash()
    background.go_on.set()
    background.provider.push("while it is away")
    site.until(lambda: background.provider.refusals["503"], "a delivery is refused while the database is away")
    status, answer = site.request("GET", "/readyz")
    assert (status, answer["code"]) == (503, "database_unreachable")
    server.start()
    background.finish()
    site.until_idle()
    assert all(process.is_alive() for process in site.processes)
    assert_each_change_is_in_its_record_once(site)
    kept = site.fetch("SELECT IdempotencyKey, State, EventCount FROM `_System_ConnectorReceipt` WHERE IdempotencyKey IS NOT NULL")
    assert sorted(kept) == [("before", "routed", 1), ("while it is away", "routed", 1)]
    forwarded = {receiver.requests.get_nowait().headers["webhook-id"] for _ in range(receiver.requests.qsize())}
    work = "SELECT WorkId FROM `_System_ConnectorWorkItem` WHERE CompanionFlow = 'http_forward'"
    assert forwarded == {row[0] for row in site.fetch(work)}, "at least once each, under one id"
    assert len(forwarded) == 2
