"""Two clusters on one host: each item runs once, and the one that stops leaves its work to the other."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from connectors.tasks import SCHEDULES
from tests.acceptance import hubspot_shapes
from tests.acceptance.service import Process, Service, service
from tests.support import signing
from tests.support.receiver import Receiver, Reply, receiving

pytestmark = pytest.mark.acceptance

SECRET = "the secret of the HubSpot app"
CONTACTS, TURNS = range(1, 21), range(10)
PROCESSES = 8
"""Of a cluster: head, sentinel, four workers, monitor, pusher."""
STOP_SECONDS = 15.0
ORPHAN_SECONDS = 2.0
HAND_OVER_SECONDS = 20.0
"""Well under the schedule's minute: the cluster that stops tells the other one."""
SLOW_SECONDS = 0.2
CONFIGURATION = """
[packs.hubspot.endpoint.crm]
public_url = "https://hooks.example.com"
secrets = ["env:SECRET"]
[connections.sync]
url = "{url}"
secret = "env:FORWARD_SECRET"
[routes.contact]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "projection"
flow = "record_table"
[routes.forward]
pack = "hubspot"
on = ["contact.*"]
kind = "contact.changed"
mode = "per_event"
flow = "http_forward"
connection = "sync"
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One that takes its time, so that work is under way whenever a cluster is stopped."""
    with receiving() as made:
        made.reply = Reply(wait=lambda: threading.Event().wait(SLOW_SECONDS))
        yield made


@pytest.fixture
def site(receiver: Receiver) -> Iterator[Service]:
    with service(SECRET=SECRET, FORWARD_SECRET=signing.STANDARD_SECRET) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/sync")))
        yield made


def start_second_cluster(site: Service) -> Process:
    """Its loops find their slots taken, so it registers none; it is up once all of its processes are and its tasks are gone."""
    second = site.start_cluster()
    site.until(lambda: len(second.group()) == PROCESSES, "the second cluster is up")
    site.until(lambda: site.fetch("SELECT COUNT(*) FROM `django_q_ormq`") == [(3,)], "only the tasks of the running loops are left")
    return second


def post_all(site: Service) -> None:
    path = "/ingress/default/crm"
    for turn in TURNS:
        for contact in CONTACTS:
            body = hubspot_shapes.body(hubspot_shapes.changed(1000 * turn + contact, "contact", contact, "turn", str(turn)))
            signed = signing.hubspot_v3(body, SECRET, f"https://hooks.example.com{path}")
            status, _ = site.post(path, body, {"Content-Type": "application/json", **signed})
            assert status == 202


def leases_of(site: Service, pids: set[int]) -> list[str]:
    """Owners of leases among these processes."""
    owners = [row[0] for row in site.fetch("SELECT LeaseOwner FROM `_System_ConnectorWorkItem` WHERE State = 'processing'")]
    prefixes = tuple(f"{socket.gethostname()}:{pid}:" for pid in pids)
    return [owner for owner in owners if owner.startswith(prefixes)]


def assert_stops_cleanly(site: Service, cluster: Process) -> None:
    pids = set(cluster.group())
    cluster.ask_to_stop()
    assert cluster.wait(STOP_SECONDS) == 0
    site.until(lambda: not cluster.group(), "no process of the stopped cluster is left", ORPHAN_SECONDS)
    assert leases_of(site, pids) == []


def test_two_clusters_run_each_item_once_and_hand_over(site: Service, receiver: Receiver) -> None:
    _, first = site.start()
    second = start_second_cluster(site)
    post_all(site)
    site.until(lambda: leases_of(site, set(first.group())), "the first cluster is at work")
    assert_stops_cleanly(site, first)
    left = site.waiting()
    assert left, "all was done before the stop: make the receiver slower"
    site.until_idle(HAND_OVER_SECONDS)
    assert second.is_alive()

    arrived = [json.loads(receiver.requests.get_nowait().body)["data"] for _ in range(receiver.requests.qsize())]
    assert Counter(one["work_id"] for one in arrived).most_common(1)[0][1] == 1
    turns: dict[str, list[str]] = {}
    for one in arrived:
        turns.setdefault(one["source"]["id"], []).extend(each["payload"]["propertyValue"] for each in one["inputs"])
    assert turns == {str(contact): [str(turn) for turn in TURNS] for contact in CONTACTS}
    assert site.fetch("SELECT DISTINCT EventCount FROM `_System_ConnectorRecord`") == [(len(TURNS),)]
    assert site.fetch("SELECT DISTINCT State, Attempts FROM `_System_ConnectorWorkItem`") == [("processed", 1)]
    assert site.table("WorkFailure") == []
    schedules = site.fetch("SELECT name, COUNT(*) FROM `django_q_schedule` GROUP BY name ORDER BY name")
    assert schedules == sorted((name, 1) for name in SCHEDULES)
    site.assert_audit_is_clean()

    assert_stops_cleanly(site, second)
    assert site.table("Worker") == []
