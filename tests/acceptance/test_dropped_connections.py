"""Connections end while they are idle, in the middle of a flow and before its completion; the database refuses writes for a while.

Everything that is connected goes on by itself: nothing is lost, nothing is done twice, no attempt is blamed, and the log says it in a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import Any

import MySQLdb
import pytest

from tests.acceptance import hubspot_shapes
from tests.acceptance.private_server import IS_INSTALLED, PrivateServer, private_server
from tests.acceptance.service import Process, Service, service
from tests.support import signing
from tests.support.receiver import Receiver, Reply
from tests.support.running import CHECKOUT

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not (IS_INSTALLED and os.environ["HEADRACE_DATABASE_URL"].startswith(("mysql", "mariadb"))),
        reason="the connections of the suite's own server are not ours to end, and MariaDB is not installed here",
    ),
]

SECRET = "a secret of either provider"
LEASE_SECONDS = 9
"""So that a heartbeat is due every three seconds: after each idle limit."""
IDLE_LIMIT_SECONDS = 2
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
flow = "record_table"
[routes.forward]
pack = "github"
on = ["*"]
kind = "repository.event"
mode = "per_event"
flow = "http_forward"
connection = "builds"
retry = {{ base = "1s", attempts = 3 }}
"""
READERS = 2
"""Pusher and sentinel of django-q2 only read, until there is a task or a schedule that is due."""
OURS = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'ordinary'"


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with private_server() as made:
        yield made


@pytest.fixture
def site(server: PrivateServer, receiver: Receiver) -> Iterator[Service]:
    """Runs as an ordinary user; the test itself looks at the database as its administrator, by connections of its own."""
    with service(server.ordinary_url("ordinary"), SECRET=SECRET, FORWARD_SECRET=signing.STANDARD_SECRET) as made:
        made.configure(CONFIGURATION.format(url=receiver.url("/builds")))
        made.start(HEADRACE_LEASE_SECONDS=str(LEASE_SECONDS))
        try:
            yield made
        finally:
            server.execute("SET GLOBAL read_only = 0", "SET GLOBAL init_connect = ''", "SET GLOBAL wait_timeout = 28800")


def body_of(name: str) -> dict[str, Any]:
    return {"ref": "refs/heads/main", "after": name, "repository": {"id": 7}}


def push(site: Service, name: str) -> int:
    body = json.dumps(body_of(name)).encode()
    return site.post("/ingress/default/code", body, signing.github(body, SECRET, delivery=name, event="push"))[0]


def change(site: Service, contact: int, turn: int) -> int:
    path = "/ingress/default/crm"
    event = hubspot_shapes.changed(1000 * turn + contact, "contact", contact, "turn", str(turn))
    body = hubspot_shapes.body(event)
    signed = signing.hubspot_v3(body, SECRET, f"https://hooks.example.com{path}")
    return site.post(path, body, {"Content-Type": "application/json", **signed})[0]


def ids(server: PrivateServer) -> set[int]:
    """Of the connections of everything that runs, and of the test's own look at its tables."""
    return {row[0] for row in server.execute(OURS)}


def kill_all(server: PrivateServer) -> set[int]:
    """End every connection of the service; which they were."""
    gone = ids(server)
    for one in gone:
        kill(server, one)
    return gone


def kill(server: PrivateServer, one: int) -> None:
    try:
        server.execute(f"KILL {one}")
    except MySQLdb.OperationalError as error:
        if error.args[0] != 1094:  # it has just ended by itself
            raise


def lines(*parts: Process) -> list[dict[str, Any]]:
    """Everything that these said."""
    text = "".join(part.log.read_text(encoding="utf-8", errors="replace") for part in parts)
    assert "Traceback" not in text, text[text.index("Traceback") - 2000 :][:4000]
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def complaints(*parts: Process) -> list[dict[str, Any]]:
    return [one for one in lines(*parts) if one["level"] not in ("info", "debug")]


def assert_whole(site: Service, items: int) -> None:
    """Each item was executed with success by the first attempt that counted, and nothing failed."""
    site.until_idle()
    assert all(process.is_alive() for process in site.processes)
    assert site.fetch("SELECT State, Attempts, COUNT(*) FROM `_System_ConnectorWorkItem` GROUP BY State, Attempts") == [
        ("processed", 1, items)
    ]
    assert site.table("WorkFailure") == []
    site.assert_audit_is_clean()


@contextmanager
def receiving_command(site: Service) -> Iterator[subprocess.Popen[str]]:
    """A long command: it takes deliveries from its standard input for as long as there are some."""
    command = [sys.executable, "manage.py", "receive", "code", "--json"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    running = subprocess.Popen(command, cwd=CHECKOUT, env=site.environment, text=True, bufsize=1, **pipes)
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


def line(name: str) -> str:
    envelope = {"headers": {"x-github-event": "push", "x-github-delivery": name}, "body": body_of(name)}
    return json.dumps(envelope) + "\n"


def test_an_idle_limit_of_the_server_is_noticed_by_nobody(site: Service, server: PrivateServer) -> None:
    server.execute(f"SET GLOBAL wait_timeout = {IDLE_LIMIT_SECONDS}")
    kill_all(server)  # so that each has a session under the limit
    assert push(site, "first") == 202
    site.until_idle()
    said = len(complaints(*site.processes))
    with receiving_command(site) as command:
        assert command.stdin is not None
        command.stdin.write(line("second"))
        stored = "SELECT COUNT(*) FROM `_System_ConnectorReceipt`"
        site.until(lambda: site.fetch(stored) == [(2,)], "the command has stored one")
        site.until_idle()
        before = ids(server)
        beats = dict(site.fetch("SELECT Id, SeenAt FROM `_System_ConnectorWorker`"))
        site.until(lambda: len(before - ids(server)) >= 4, "the server has dropped what was idle")
        site.until(
            lambda: all(seen > beats[id] for id, seen in site.fetch("SELECT Id, SeenAt FROM `_System_ConnectorWorker`")),
            "each heartbeat has come through meanwhile",
        )
        assert push(site, "third") == 202
        command.stdin.write(line("fourth"))
        command.stdin.close()
        answer = json.loads(command.stdout.read().splitlines()[-1])
    assert (answer["received"], answer["refused"]) == (2, [])
    assert change(site, 7, 1) == 202
    assert_whole(site, 5)
    assert complaints(*site.processes)[said:] == []


def test_a_kill_of_every_connection_while_nothing_happens_costs_at_most_a_line_each(site: Service, server: PrivateServer) -> None:
    assert push(site, "first") == 202
    site.until_idle()
    for _ in range(3):
        gone = kill_all(server)
        site.until(lambda old=gone: not old & ids(server), "all of them are gone")
        site.until(lambda: len(ids(server)) >= 3, "the loops are connected again")
    assert push(site, "second") == 202
    assert change(site, 7, 1) == 202
    assert_whole(site, 3)
    assert len(complaints(*site.processes)) <= 3 * 12


@pytest.fixture
def held(receiver: Receiver) -> Iterator[Callable[[], None]]:
    """The receiver does not answer before this is called."""
    go_on = Event()
    receiver.reply = Reply(wait=lambda: go_on.wait(60))
    yield go_on.set
    go_on.set()


def test_a_kill_in_the_middle_of_flows_repeats_none_and_applies_each_once(
    site: Service, server: PrivateServer, receiver: Receiver, held: Callable[[], None]
) -> None:
    assert change(site, 7, 0) == 202
    site.until_idle()
    with closing(site.new_connection()) as stranger, closing(stranger.cursor()) as cursor:
        stranger.begin()
        cursor.execute("SELECT Id FROM `_System_ConnectorRecord` WHERE SourceId = '7' FOR UPDATE")
        (own,) = _row(cursor, "SELECT CONNECTION_ID()")
        assert change(site, 7, 1) == 202
        assert push(site, "in-flight") == 202
        running = "SELECT COUNT(*) FROM `_System_ConnectorWorkItem` WHERE State = 'processing'"
        site.until(lambda: site.fetch(running) == [(2,)], "both flows run")
        site.until(lambda: not receiver.requests.empty(), "the forward is under way")
        for one in ids(server) - {own}:
            kill(server, one)
        stranger.rollback()
    held()
    assert_whole(site, 3)
    assert site.fetch("SELECT EventCount FROM `_System_ConnectorRecord`") == [(2,)]
    assert receiver.requests.qsize() == 1
    lines(*site.processes)


def test_a_kill_between_the_end_of_a_flow_and_its_completion_repeats_nothing(
    site: Service, server: PrivateServer, receiver: Receiver, held: Callable[[], None]
) -> None:
    assert push(site, "in-flight") == 202
    site.until(lambda: not receiver.requests.empty(), "the forward is under way")
    with closing(site.new_connection()) as stranger, closing(stranger.cursor()) as cursor:
        stranger.begin()
        cursor.execute("SELECT Id FROM `_System_ConnectorWorkItem` FOR UPDATE")
        held()
        waiting = (
            "SELECT p.ID FROM information_schema.PROCESSLIST p WHERE p.USER = 'ordinary' AND p.INFO LIKE 'SELECT Id, LeaseToken%'"
        )
        site.until(lambda: server.execute(waiting), "the completion waits for the row")
        for (one,) in server.execute(waiting):
            kill(server, one)
        stranger.rollback()
    assert_whole(site, 1)
    assert receiver.requests.qsize() == 1
    lines(*site.processes)


def _row(cursor: Any, sql: str) -> tuple[Any, ...]:
    cursor.execute(sql)
    row: tuple[Any, ...] = cursor.fetchone()
    return row


# ---- a failover: the server takes no writes


def assert_refuses_writes(site: Service) -> None:
    site.until(lambda: site.request("GET", "/readyz")[0] == 503, "it says that it is not ready")
    status, answer = site.request("GET", "/readyz")
    assert (status, answer["code"]) == (503, "database_read_only")
    assert "is read-only" in answer["reason"]
    assert "headrace_database_writable 0.0" in site.request("GET", "/metrics")[1]
    assert site.manage("health", expect=2)["reasons"][0]["code"] == "database_read_only"


def read_only_lines(site: Service) -> list[dict[str, Any]]:
    return [one for one in lines(*site.processes) if "is read-only" in one.get("reason", "")]


def test_a_server_that_becomes_read_only_is_waited_for(site: Service, server: PrivateServer, receiver: Receiver) -> None:
    assert push(site, "before") == 202
    site.until_idle()
    server.execute("SET GLOBAL read_only = 1")
    assert_refuses_writes(site)
    assert push(site, "away-1") == 202, "into the spool"
    assert change(site, 7, 1) == 503
    site.until(lambda: site.folder.joinpath("spool").glob("*.journal"), "it is there")
    site.until(lambda: complaints(site.processes[0]), "the web server has said it")
    assert site.request("GET", "/readyz")[1]["spool"]["waiting_bytes"] > 0
    server.execute("SET GLOBAL read_only = 0")
    site.until_serving()
    assert change(site, 7, 1) == 202
    site.until(lambda: not [*(site.folder / "spool").glob("*.journal")], "the spool is drained")
    assert_whole(site, 3)
    assert receiver.requests.qsize() == 2
    assert site.manage("spool", "list")["aside"] == []


def test_work_that_is_due_while_the_server_is_read_only_burns_no_attempt(
    site: Service, server: PrivateServer, receiver: Receiver, held: Callable[[], None]
) -> None:
    """One is in the middle of its flow, others are due: the end of the one waits to be written, the others to be claimed."""
    assert push(site, "in-flight") == 202
    site.until(lambda: not receiver.requests.empty(), "the forward is under way")
    server.execute("SET GLOBAL read_only = 1")
    held()
    site.until(lambda: read_only_lines(site) or complaints(site.processes[1]), "the cluster has said it")
    since = len(complaints(*site.processes))
    assert_refuses_writes(site)
    server.execute("SET GLOBAL read_only = 0")
    site.until_serving()
    for number in range(5):
        assert push(site, f"after-{number}") == 202
    assert_whole(site, 6)
    assert receiver.requests.qsize() == 6, "the one that had ended was not sent again"
    assert since <= 40


def test_an_address_that_leads_to_another_server_is_followed_without_a_restart(site: Service, server: PrivateServer) -> None:
    """The old server goes on as one that may only be read, and whoever is connected to it stays connected; new connections lead elsewhere.

    Sessions that begin under `init_connect` play those to the old one.
    """
    assert push(site, "before") == 202
    site.until_idle()
    server.execute("SET GLOBAL init_connect = 'SET SESSION TRANSACTION READ ONLY'")
    kill_all(server)
    site.until(lambda: site.request("GET", "/readyz")[0] == 503, "new sessions may only read")
    assert_refuses_writes(site)
    site.until(lambda: len(ids(server)) >= 3, "the loops are connected, to the old server")
    old = ids(server)
    server.execute("SET GLOBAL init_connect = ''")
    site.until_serving()
    assert change(site, 7, 1) in (202, 503), "the web server may have to find out"
    site.until(lambda: change(site, 8, 1) in (200, 202), "deliveries are stored")
    site.until_idle()
    site.until(lambda: len(old & ids(server)) <= READERS, "no loop is left behind")
    assert push(site, "after") in (200, 202)
    site.until(lambda: not [*(site.folder / "spool").glob("*.journal")], "the spool is drained")
    site.until_idle()
    states = site.fetch("SELECT DISTINCT State, Attempts FROM `_System_ConnectorWorkItem`")
    assert states == [("processed", 1)]
    assert all(process.is_alive() for process in site.processes)
    site.assert_audit_is_clean()
    lines(*site.processes)
