"""SIGTERM ends the cluster cleanly, whether it reaches its head alone (a supervisor, `KillMode=mixed`) or its whole group (a terminal)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from ops_ui.start.supervisor import CLUSTER_GRACE_SECONDS
from tests.acceptance import hubspot_shapes
from tests.acceptance.service import Process, Service, service
from tests.support import signing
from tests.support.receiver import Receiver, Reply

pytestmark = pytest.mark.acceptance

SECRET = "the secret of the HubSpot app"
CONTACTS = range(1, 41)
PATIENCE_SECONDS = 30.0
CONFIGURATION = """
[packs.hubspot.endpoint.crm]
public_url = "https://hooks.example.com"
secrets = ["env:SECRET"]
[connections.sync]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.forward]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "per_event"
flow = "http_forward"
connection = "sync"
"""


class Brake:
    """Holds every answer of the receiver until it is let go, so that flows run when the signal comes."""

    def __init__(self) -> None:
        self.is_off = threading.Event()

    def reply(self) -> Reply:
        return Reply(wait=lambda: self.is_off.wait(PATIENCE_SECONDS))


@pytest.fixture
def site(receiver: Receiver) -> Iterator[Service]:
    with service(SECRET=SECRET, FORWARD_SECRET=signing.STANDARD_SECRET) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/sync")))
        yield made


def to_the_head(cluster: Process) -> None:
    cluster.ask_to_stop()


def to_the_group(cluster: Process) -> None:
    os.killpg(cluster.pid, signal.SIGTERM)


def post_all(site: Service) -> None:
    path = "/ingress/default/crm"
    body = hubspot_shapes.body(*(hubspot_shapes.changed(contact, "contact", contact, "turn", "1") for contact in CONTACTS))
    signed = signing.hubspot_v3(body, SECRET, f"https://hooks.example.com{path}")
    status, _ = site.post(path, body, {"Content-Type": "application/json", **signed})
    assert status == 202


def states(site: Service) -> set[tuple[str, int]]:
    return {(state, attempts) for state, attempts in site.fetch("SELECT State, Attempts FROM `_System_ConnectorWorkItem`")}


@pytest.mark.parametrize("terminate", [to_the_head, to_the_group])
def test_running_flows_end_and_the_rest_is_handed_back(
    site: Service, receiver: Receiver, terminate: Callable[[Process], None]
) -> None:
    brake = Brake()
    receiver.reply = brake.reply()
    _, cluster = site.start()
    post_all(site)
    site.until(lambda: not receiver.requests.empty(), "a flow is in the middle of its call")

    terminate(cluster)
    assert cluster.is_alive(), "it waits for the flows that run"
    brake.is_off.set()
    assert cluster.wait(CLUSTER_GRACE_SECONDS) == 0
    site.until(lambda: not cluster.group(), "nothing of its group is left")

    # Begun attempts are over, and what was not begun has not burned one.
    assert states(site) <= {("processed", 1), ("retry", 0), ("pending", 0)}
    assert site.table("Worker") == []
    assert site.table("WorkFailure") == []
    site.assert_audit_is_clean()

    site.start_cluster()
    site.until_idle()
    assert states(site) == {("processed", 1)}
    arrived = [receiver.requests.get_nowait().headers["webhook-id"] for _ in range(receiver.requests.qsize())]
    assert sorted(set(arrived)) == sorted(arrived)
    assert len(arrived) == len(CONTACTS)


@pytest.mark.parametrize("terminate", [to_the_head, to_the_group])
def test_an_idle_cluster_ends_at_once(site: Service, terminate: Callable[[Process], None]) -> None:
    _, cluster = site.start()
    terminate(cluster)
    assert cluster.wait(CLUSTER_GRACE_SECONDS) == 0
    site.until(lambda: not cluster.group(), "nothing of its group is left")
    assert site.table("Worker") == []
