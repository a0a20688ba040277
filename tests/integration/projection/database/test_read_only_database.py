"""A database that answers and takes no writes: each module treats it as unavailable, and counts it against no item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import call_command
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from connectors.ingress.outage import outage
from connectors.ingress.spool import spooling
from connectors.ingress.spool.drain import Drain
from connectors.models import Pack, Receipt
from connectors.operations import audit_results
from connectors.routing.router import route_batch
from projection.admission import activation
from projection.database import outages
from projection.database.catalogue import statement
from projection.execution.worker import drain_claims
from projection.models import Event, WorkFailure, WorkItem
from projection.runtime.loop import resident
from tests.support import console_world, signing
from tests.support.commands import run
from tests.support.deliveries import change, open_ingress
from tests.support.flows_of_tests import recording
from tests.support.ingress import answer, open_endpoint
from tests.support.read_only import read_only_server

pytestmark = pytest.mark.usefixtures("database")

READ_ONLY = OperationalError(1290, "The MariaDB server is running with the --read-only option so it cannot execute this statement")
FULL = [
    OperationalError(1114, "The table '_System_ConnectorWorkItem' is full"),
    OperationalError(
        1021, 'Disk full (/tmp/#sql); waiting for someone to free some space... (errno: 28 "No space left on device")'
    ),
    OperationalError(3675, "Create table/tablespace 'x' failed, as disk is full"),
    OperationalError(1026, "Error writing file '/var/log/mysql/bin.000007' (errno: 28 \"No space left on device\")"),
    OperationalError(1030, 'Got error 28 "No space left on device" from storage engine InnoDB'),
]
REFUSED = [READ_ONLY, *FULL]


def work(count: int = 1) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(*[change(n) for n in range(count)])


@pytest.mark.parametrize("error", REFUSED, ids=lambda error: error.args[0])
@pytest.mark.parametrize(("away", "outcome", "attempts"), [(True, "deferred", 0), (False, "retry", 1)])
def test_a_flow_that_could_not_write_uses_no_attempt_while_the_database_is_away(
    away: bool, outcome: str, attempts: int, error: OperationalError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it takes writes again, the error is the flow's own: it may use another database."""
    work()
    monkeypatch.setattr("projection.execution.execute.is_database_away", lambda _: away)
    with recording() as seen:
        seen.raises = [error]
        assert drain_claims() == 1
    assert WorkFailure.objects.get().outcome == outcome
    item = WorkItem.objects.get()
    assert (item.state, item.attempts) == ("retry", attempts)


@pytest.mark.parametrize("error", REFUSED, ids=lambda error: error.args[0])
def test_an_atomic_group_is_not_tried_one_by_one_on_a_server_that_takes_nothing(
    error: OperationalError, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(3)
    monkeypatch.setattr("projection.execution.execute.is_database_away", lambda _: True)
    with recording(atomic=True) as seen:
        seen.raises = [error]
        with pytest.raises(OperationalError):
            drain_claims()
    assert len(seen.runs) == 1
    assert not WorkFailure.objects.exists()


def test_a_loop_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("projection.runtime.loop.LONGEST_BACKOFF_SECONDS", 0.001)
    faults: list[Exception] = [READ_ONLY, *FULL, OperationalError(2003, "Can't connect"), RuntimeError("a bug")]

    def step() -> int:
        if faults:
            raise faults.pop(0)
        return 0

    resident("claim", step, lambda: 0.0, None, lambda: not faults)
    said = capsys.readouterr().err
    for reason in (
        "the database is read-only (for example during a failover); trying again",
        "the database is unavailable; trying again",
    ):
        assert said.count(reason) == 1
    assert said.count("the disk of the database is full; free space there; trying again") == len(FULL)
    assert said.count('"reason": "trying again"') == 1


@pytest.mark.parametrize("error", FULL, ids=lambda error: error.args[0])
def test_a_full_disk_is_told_and_what_only_reads_is_not_taken_for_one(error: OperationalError) -> None:
    activation.activate("test")

    def full(cursor: Any) -> None:
        raise error

    with mock.patch("projection.database.outages.probe_writes", full):
        response = Client().get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "database_full")
        assert "Free space on the database server" in response.json()["reason"]
        code, health = run("health")
        assert (code, health["ready"], health["reasons"][0]["code"]) == (2, False, "database_full")
    assert Client().get("/readyz").json() == {"ready": True}


@pytest.mark.parametrize("error", FULL, ids=lambda error: error.args[0])
def test_a_full_disk_is_an_outage_though_other_tables_still_have_space(error: OperationalError) -> None:
    assert outages.is_database_away(error)


@pytest.mark.parametrize("error", FULL, ids=lambda error: error.args[0])
def test_the_router_counts_no_attempt_of_a_receipt_on_a_full_disk(error: OperationalError, monkeypatch: pytest.MonkeyPatch) -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.send(change(1))

    def full(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("connectors.routing.router._admit", full)
        with pytest.raises(OperationalError):
            route_batch("default")
    receipt = Receipt.objects.get()
    assert (receipt.state, receipt.attempts, receipt.last_error) == ("pending", 0, None)


@pytest.mark.parametrize("kind", ["ENGINE=MEMORY", "temporary"])
def test_a_table_that_may_not_grow_is_no_full_disk(kind: str) -> None:
    """What a flow filled by itself: its own failure, at a server that has space."""
    name = "kept_in_memory" if kind == "ENGINE=MEMORY" else "#sql-temptable-1"
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept_in_memory (number INT) ENGINE=MEMORY")
    try:
        assert not outages.is_database_away(OperationalError(1114, f"The table '{name}' is full"))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE kept_in_memory")


@pytest.mark.parametrize("code", [1026, 1030])
def test_another_error_of_the_system_is_no_full_disk(code: int) -> None:
    assert not outages.is_full(OperationalError(code, "Got error 128 from storage engine (errno: 2280)"))


def test_the_probe_writes_more_than_a_page_and_leaves_nothing() -> None:
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as queries:
        outages.probe_writes(cursor)
    assert len(queries) <= 5
    assert not Receipt.objects.exists()
    assert not Event.objects.exists()


def test_the_probe_moves_no_counter_and_really_writes() -> None:
    ingress = open_ingress()
    ingress.route(mode="per_event")
    ingress.admit(change(1))
    with connection.cursor() as cursor:
        outages.probe_writes(cursor)
    ingress.admit(change(2))
    assert [two - one for one, two in pairwise(Receipt.objects.order_by("id").values_list("id", flat=True))] == [1]
    for table in ("receipts", "events"):
        with transaction.atomic(), connection.cursor() as cursor:
            assert cursor.execute(statement(f"probe_space_of_{table}")) == 4
            transaction.set_rollback(True)


def test_a_pause_between_two_tries_grows_to_its_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("projection.runtime.wake_up.Listener.wait", lambda _, seconds: waits.append(seconds))

    def step() -> int:
        raise READ_ONLY

    resident("claim", step, lambda: 0.0, None, lambda: len(waits) == 9)
    assert waits == [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0, 15.0]


def test_it_is_not_ready_and_says_why() -> None:
    activation.activate("test")
    with read_only_server():
        response = Client().get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "database_read_only")
        assert "is read-only" in response.json()["reason"]
        code, health = run("health")
        assert (code, health["ready"], health["reasons"][0]["code"]) == (2, False, "database_read_only")
        assert "headrace_database_writable 0.0" in Client().get("/metrics").content.decode()
    assert Client().get("/readyz").json() == {"ready": True}
    assert "headrace_database_writable 1.0" in Client().get("/metrics").content.decode()


@pytest.fixture
def spool(tmp_path: Path, settings: Any) -> Iterator[None]:
    settings.HEADRACE_SPOOL_DIR = tmp_path / "spool"
    outage.forget()
    spooling.forget()
    yield
    spooling.forget()
    outage.forget()


def test_deliveries_are_refused_or_spooled_and_drained_when_the_address_leads_to_another_server(spool: None) -> None:
    github, other = open_endpoint("github"), open_endpoint(slug="other")
    with read_only_server("ingress"):
        refused = other.post(b"{}")
        assert (refused.status_code, answer(refused)["code"]) == (503, "database_unavailable")
        spooled = github.post(b"{}", signing.github(b"{}", github.secret, delivery="d-1"))
        assert answer(spooled) == {"receipt": None, "duplicate": False, "spooled": True}
        drain = Drain()
        for _ in range(4):
            with pytest.raises(OperationalError):
                drain.run()
    assert drain.run() == {"accepted": 1}
    assert other.post(b"{}").status_code == 202
    assert Receipt.objects.count() == 2


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What Django said of requests; it propagates to the handler of the root."""
    return [record.getMessage() for record in caplog.records if record.name == "django.request"]


def test_the_console_can_be_read_and_says_why_it_does_nothing_until_it_does(caplog: pytest.LogCaptureFixture) -> None:
    pack = open_endpoint("github").pack
    console = console_world.client("administrator")
    console.raise_request_exception = False
    path, form = f"/admin/packs/{pack.id}/disable/", {"reason": "a test"}
    with read_only_server():
        assert console.get("/admin/packs/").status_code == 200
        refused = console.post(path, form)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
    assert "<h1>The database is read-only</h1>" in refused.content.decode()
    assert "default-src 'self'" in refused.headers["Content-Security-Policy"]
    (line,) = warned(caplog)
    assert line.startswith(f"Service Unavailable: {path} (OperationalError: ")
    assert Pack.objects.get().state == "installed"
    assert console.post(path, form).status_code == 302, "by a connection of its own, which the refusal had asked for"
    assert Pack.objects.get().state == "disabled"


@pytest.mark.parametrize(
    ("error", "status", "heading"),
    [
        (OperationalError(2003, "Can't connect to server on 'db'"), 503, "The database is unavailable"),
        (OperationalError(2006, "Server has gone away"), 503, "The database is unavailable"),
        (InterfaceError(0, ""), 503, "The database is unavailable"),
        (OperationalError(1054, "Unknown column"), 500, "Something went wrong"),
        (RuntimeError("a bug"), 500, "Something went wrong"),
    ],
)
def test_a_page_tells_an_outage_from_a_failure_of_ours(error: Exception, status: int, heading: str) -> None:
    console = console_world.client("viewer")
    console.raise_request_exception = False
    with mock.patch("ops_ui.console.setup.packs.clock.now", side_effect=error):
        failed = console.get("/admin/packs/")
    assert failed.status_code == status
    assert f"<h1>{heading}</h1>" in failed.content.decode()
    assert "db" not in failed.content.decode().partition("<main")[2], "nothing of the error is shown"


def test_a_refused_delivery_has_one_line_in_the_log(
    spool: None, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], settings: Any
) -> None:
    settings.HEADRACE_SPOOL_BYTES = 10
    github, other = open_endpoint("github"), open_endpoint(slug="other")
    capsys.readouterr()
    with read_only_server("ingress"):
        assert other.post(b"{}").status_code == 503
        said = capsys.readouterr().err.splitlines()
        assert [json.loads(line)["state"] for line in said if '"level": "error"' in line] == ["database_unavailable"]
        assert github.post(b"{}", signing.github(b"{}", github.secret, delivery="d-1")).status_code == 503, "the spool is full"
    assert other.post(b"{}", {}).status_code == 401
    assert warned(caplog) == []
    assert other.post(b"{}", path="/ingress/default/unheard-of").status_code == 404
    assert warned(caplog) == ["Not Found: /ingress/default/unheard-of"], "of this one nobody else speaks"


def test_an_audit_says_what_it_found_and_that_the_console_is_not_told() -> None:
    assert run("audit")[0] == 0
    before = audit_results.last()
    answer, said = StringIO(), StringIO()
    with read_only_server():
        call_command("audit", "--json", stdout=answer, stderr=said)
    assert json.loads(answer.getvalue())["ok"] is True
    assert "The result could not be stored for the console" in said.getvalue()
    assert audit_results.last() == before
