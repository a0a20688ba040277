"""The spool: what is answered 202 while the database is away becomes exactly one receipt, in order, whatever happens in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import DataError, OperationalError
from django.http import HttpResponse
from django.test import Client

from connectors import secrets
from connectors.ingress import endpoint_facts, metrics
from connectors.ingress.outage import outage
from connectors.ingress.spool import drain, files, last_known, set_aside, spooling
from connectors.ingress.spool.drain import Drain
from connectors.ingress.spool.keeper import Keeper
from connectors.ingress.spool.writer import SpoolWriter
from connectors.models import AuditEntry, Endpoint, Receipt
from ops_ui.monitoring import spool_status
from projection.admission import activation
from projection.database import clock
from tests.support import console_world, factories, signing
from tests.support.commands import run, say
from tests.support.ingress import Ingress, answer, open_endpoint

pytestmark = pytest.mark.usefixtures("database", "spool")

GONE = OperationalError(2006, "Server has gone away")
Settings = Any  # pytest-django's fixture


@pytest.fixture
def spool(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    settings.HEADRACE_SPOOL_DIR = tmp_path / "spool"
    outage.forget()
    spooling.forget()
    yield tmp_path / "spool"
    spooling.forget()
    outage.forget()


@pytest.fixture
def github() -> Ingress:
    return open_endpoint("github")


def send(ingress: Ingress, delivery: str | None, body: bytes = b'{"n":1}') -> HttpResponse:
    return ingress.post(body, signing.github(body, ingress.secret, delivery=delivery))


def away() -> Any:
    """The database takes nothing; what is known of the endpoints is fresh."""
    return mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=GONE)


def spooled(ingress: Ingress, *deliveries: tuple[str | None, bytes]) -> None:
    with away():
        for delivery, body in deliveries:
            spooling.database_failed()
            assert answer(send(ingress, delivery, body)) == {"receipt": None, "duplicate": False, "spooled": True}


def bodies() -> list[bytes]:
    return [bytes(body) for body in Receipt.objects.order_by("received_at", "id").values_list("body", flat=True)]


# ---- what is spooled


def test_a_delivery_of_a_provider_that_never_retries_is_kept_and_becomes_its_receipt(github: Ingress) -> None:
    before = clock.now()
    with away():
        response = send(github, "d-1", b'{ "n" : 1.10 }\n')
    after = clock.now()
    assert response.status_code == 202
    assert Receipt.objects.count() == 0
    assert Drain().run() == {"accepted": 1}
    row = Receipt.objects.get()
    assert bytes(row.body) == b'{ "n" : 1.10 }\n'
    assert (row.idempotency_key, row.state, row.method, row.url) == ("d-1", "pending", "POST", github.url)
    assert (row.endpoint_id, row.pack_id, row.pack_incarnation) == (github.endpoint.id, github.pack.id, github.pack.incarnation)
    assert json.loads(row.headers)["x-github-delivery"] == "d-1"
    slack = timedelta(milliseconds=200)  # two looks at two clocks
    assert before - slack <= row.received_at <= after + slack
    assert files.is_empty()
    assert Drain().run() == {}


@pytest.mark.parametrize(
    ("pack", "limits", "bound", "code"),
    [
        ("generic", {}, 2**20, "database_unavailable"),
        ("generic", {"spool": True}, 2**20, ""),
        ("github", {}, 2**20, ""),
        ("github", {"spool": False}, 2**20, "database_unavailable"),
        ("github", {}, 0, "database_unavailable"),
        ("github", {}, 10, "spool_full"),
    ],
)
def test_an_endpoint_spools_as_set_else_where_its_provider_never_retries(
    pack: str, limits: dict[str, Any], bound: int, code: str, settings: Settings
) -> None:
    settings.HEADRACE_SPOOL_BYTES = bound
    ingress = open_endpoint(pack, limits=limits)
    with away():
        response = ingress.post(b"{}") if pack == "generic" else send(ingress, "d-1")
    assert (response.status_code, answer(response).get("code", "")) == (503 if code else 202, code)
    assert ("Retry-After" in response.headers) is bool(code)
    assert files.is_empty() is bool(code)


def test_what_does_not_verify_is_refused_as_ever(github: Ingress) -> None:
    with away():
        assert github.post(b"{}", {"X-Hub-Signature-256": "sha256=00"}).status_code == 401
    assert files.is_empty()


# ---- exactly once


def test_copies_of_a_delivery_are_one_receipt_and_other_bodies_conflicts(github: Ingress) -> None:
    first = answer(send(github, "known"))["receipt"]
    spooled(github, ("known", b'{"n":1}'), ("new", b'{"n":2}'), ("new", b'{"n":2}'), ("new", b'{"n":3}'), ("known", b'{"n":4}'))
    assert Drain().run() == {"accepted": 1, "duplicate": 2, "conflict": 2}
    states = sorted(Receipt.objects.values_list("idempotency_key", "state"))
    assert states == [("known", "conflict"), ("known", "pending"), ("new", "conflict"), ("new", "pending")]
    assert str(Receipt.objects.get(idempotency_key="known", state="pending").id) == first


def test_deliveries_without_an_id_are_a_receipt_each_however_often_they_are_drained(github: Ingress, spool: Path) -> None:
    spooled(github, (None, b"{}"), (None, b"{}"))
    shutil.copytree(spool, spool.with_name("copy"))
    assert Drain().run() == {"accepted": 2}
    shutil.copytree(spool.with_name("copy"), spool, dirs_exist_ok=True)  # killed before the file was removed
    assert Drain().run() == {"duplicate": 2}
    assert list(Receipt.objects.values_list("idempotency_key", flat=True)) == [None, None]
    assert files.is_empty()


def test_an_insert_whose_answer_was_lost_is_not_repeated_by_the_spool(github: Ingress) -> None:
    """The server finished it after we had given up: the record carries the identity of that insert."""
    real = type(Receipt.objects).insert_receipt

    def lost(manager: Any, draft: Any) -> int:
        real(manager, draft)
        raise OperationalError(2013, "Lost connection during query")

    with mock.patch.object(type(Receipt.objects), "insert_receipt", lost):
        assert answer(send(github, None)) == {"receipt": None, "duplicate": False, "spooled": True}
    assert Drain().run() == {"duplicate": 1}
    assert Receipt.objects.count() == 1


# ---- in order


def test_the_files_of_two_processes_are_merged_by_arrival_and_dated_by_the_databases_clock(github: Ingress) -> None:
    start = datetime.now(UTC) - timedelta(seconds=4)
    writers = [SpoolWriter(), SpoolWriter()]
    draft = _draft(github)
    for number in range(20):
        arrived = int((start + timedelta(seconds=number / 10)).timestamp() * 1_000_000)
        writers[number * 7 % 3 % 2].append(spooling.SpooledDelivery(arrived, "main", "github", draft(number)).payload())
    ahead = timedelta(minutes=10)
    with mock.patch.object(drain, "_database_now", side_effect=lambda: datetime.now(UTC) + ahead):
        assert Drain().run() == {"accepted": 20}
    found = Receipt.objects.order_by("id").values_list("body", "received_at")
    assert [bytes(body) for body, _ in found] == [b'{"n":%d}' % number for number in range(20)]
    assert [round((at - start - ahead).total_seconds(), 1) for _, at in found] == [number / 10 for number in range(20)]


def _draft(ingress: Ingress) -> Callable[[int], Any]:
    from connectors.delivery import Headers, IngressRequest
    from connectors.ingress.receipt_draft import draft_of
    from connectors.ingress.spool.spooled import identified
    from tests.support.ingress import facts

    known = facts(ingress)
    return lambda number: identified(draft_of(known, IngressRequest("POST", ingress.url, Headers(), b'{"n":%d}' % number)))


def test_what_comes_after_an_outage_goes_behind_what_waits_for_a_short_time(
    github: Ingress, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled(github, ("first", b'{"n":1}'))
    assert answer(send(github, "second", b'{"n":2}'))["receipt"] is None
    Drain().run()
    assert bodies() == [b'{"n":1}', b'{"n":2}']
    assert answer(send(github, "third", b'{"n":3}'))["receipt"] is not None

    spooled(github, ("fourth", b'{"n":4}'))
    monkeypatch.setattr(spooling, "BEHIND_SECONDS", 0.0)
    assert answer(send(github, "fifth", b'{"n":5}'))["receipt"] is not None


def test_an_endpoint_that_does_not_spool_waits_for_nobody(github: Ingress) -> None:
    spooled(github, ("first", b"{}"))
    assert open_endpoint(slug="other").post(b"{}").status_code == 202
    assert Receipt.objects.count() == 1


# ---- damage


def test_a_torn_tail_and_damage_in_the_middle_are_set_aside_and_the_others_drained(github: Ingress) -> None:
    spooled(github, *[(f"d-{number}", b'{"n":%d}' % number) for number in range(5)])
    spooling.forget()
    (one,) = files.journals()
    data = bytearray(one.path.read_bytes())
    third = data.index(b'{"n":2}')
    data[third + 5] ^= 1
    one.path.write_bytes(data[:-3])
    before = metrics.DRAINED.labels("damaged")._value.get()
    assert Drain().run() == {"accepted": 3}
    assert bodies() == [b'{"n":0}', b'{"n":1}', b'{"n":3}']
    damaged, torn = files.aside_files()
    assert (damaged.suffix, torn.suffix) == (".damaged", ".torn")
    assert b'{"n":' in damaged.read_bytes()
    assert torn.read_bytes().endswith(b'{"n"')
    assert metrics.DRAINED.labels("damaged")._value.get() == before + 1
    assert files.is_empty()
    assert files.usage().aside_files == 2


def refusing(*names: str, error: Exception | None = None) -> Any:
    """The database takes every delivery but these."""
    real = type(Receipt.objects).insert_receipt

    def insert(manager: Any, draft: Any, *more: Any) -> Any:
        if draft.idempotency_key in names:
            raise error or DataError(1406, "Data too long for column 'Body'")
        return real(manager, draft, *more)

    return mock.patch.object(type(Receipt.objects), "insert_receipt", insert)


def test_what_the_database_refuses_holds_up_nobody_and_waits_for_an_operator_after_three_tries(github: Ingress) -> None:
    spooled(github, *[(f"d-{number}", b'{"n":%d}' % number) for number in range(6)])
    drainer = Drain(apart_seconds=0.0)
    with refusing("d-1", "d-3"):
        assert drainer.run() == {"accepted": 4, "put_off": 2}, "at once, though two are refused"
        assert bodies() == [b'{"n":%d}' % number for number in (0, 2, 4, 5)]
        assert [drainer.run() for _ in range(3)] == [{"put_off": 2}, {"refused": 2}, {}]
    assert files.is_empty()
    assert [one.kind for one in set_aside.found()] == ["refused"] * 2


def test_between_two_tries_passes_a_while_and_a_new_process_goes_on_with_them(github: Ingress) -> None:
    spooled(github, ("d-1", b"{}"))
    first, second = Drain(apart_seconds=3600), Drain(apart_seconds=0.0)
    with refusing("d-1"):
        assert [first.run(), first.run()] == [{"put_off": 1}, {}]
        assert [second.run() for _ in range(3)] == [{"put_off": 1}, {"put_off": 1}, {"refused": 1}]
    assert [one.kind for one in set_aside.found()] == ["refused"]


def test_one_that_was_refused_once_and_is_taken_then_is_one_receipt(github: Ingress) -> None:
    spooled(github, (None, b'{"n":1}'), (None, b'{"n":2}'))
    drainer = Drain(apart_seconds=0.0)
    real = type(Receipt.objects).insert_receipt
    with mock.patch.object(
        type(Receipt.objects), "insert_receipt", lambda manager, draft: refuse_first(draft) or real(manager, draft)
    ):
        assert drainer.run() == {"accepted": 1, "put_off": 1}
    assert drainer.run() == {"accepted": 1}
    assert sorted(bodies()) == [b'{"n":1}', b'{"n":2}']
    assert files.is_empty()


def refuse_first(draft: Any) -> None:
    if draft.body == b'{"n":1}':
        raise DataError(1406, "Data too long")


def test_a_kill_after_a_refused_record_got_a_file_of_its_own_doubles_nothing(github: Ingress, spool: Path) -> None:
    spooled(github, (None, b'{"n":1}'), (None, b'{"n":2}'))
    shutil.copytree(spool, spool.with_name("copy"))
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=DataError(1406, "Data too long")):
        assert Drain().run() == {"put_off": 2}
    shutil.copytree(spool.with_name("copy"), spool, dirs_exist_ok=True)
    assert Drain().run() == {"accepted": 2, "duplicate": 2}


@pytest.mark.parametrize(
    "error",
    [
        OperationalError(1290, "running with the --read-only option"),
        OperationalError(1114, "The table is full"),
        OperationalError(1021, "Disk full"),
        OperationalError(1040, "Too many connections"),
        OperationalError(1213, "Deadlock"),
    ],
    ids=lambda error: str(error.args[0]),
)
def test_what_the_server_would_refuse_to_anybody_is_no_fault_of_a_record(github: Ingress, error: OperationalError) -> None:
    spooled(github, ("d-1", b"{}"), ("d-2", b"{}"))
    drainer = Drain(apart_seconds=0.0)
    read_only_server = mock.patch("projection.database.outages.probe_writes", side_effect=error)
    with mock.patch.object(type(Receipt.objects), "insert_receipt", side_effect=error), read_only_server:
        for _ in range(2 * drain.TRIES):
            with pytest.raises(OperationalError):
                drainer.run()
    assert files.aside_files() == []
    assert drainer.run() == {"accepted": 2}


def test_an_operator_sees_why_a_delivery_was_refused_and_gives_it_back(github: Ingress) -> None:
    spooled(github, ("d-1", b'{"n":1}'), ("d-2", b'{"n":2}'))
    with refusing("d-1"):
        assert run("spool", "drain") == (1, {"drained": {"accepted": 1, "refused": 1}, "refused": []})
    code, listed = run("spool", "list")
    (one,) = listed["aside"]
    assert (code, one["kind"], one["endpoint"], one["delivery_id"]) == (1, "refused", "default/main", "d-1")
    assert "Data too long for column 'Body'" in one["reason"]
    assert one["arrived"].endswith("Z")
    code, text = say("spool", "list")
    assert "d-1" in text
    assert "Data too long" in text
    assert run("spool", "retry", "other")[1]["refused"][0]["code"] == "not_found"
    assert run("spool", "retry") == (0, {"retried": [one["name"]], "refused": []})
    assert run("spool", "drain") == (0, {"drained": {"accepted": 1}, "refused": []})
    assert len(bodies()) == 2
    assert run("spool", "list")[1]["aside"] == []
    assert not [*(files.folder() / files.ASIDE).iterdir()], "nor is the reason left"


def test_an_operator_exports_what_was_refused_as_receive_takes_it_and_discards_it(
    github: Ingress, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spooled(github, ("d-1", '{ "n" : 1.10, "x": "é" }'.encode()), ("d-2", b"\xff"))
    with refusing("d-1", "d-2"):
        run("spool", "drain")
    code, exported = run("spool", "export")
    assert code == 0
    first, second = exported["exported"]
    assert (first["body"], first["headers"]["x-github-delivery"]) == ('{ "n" : 1.10, "x": "é" }', "d-1")
    assert (second["body_base64"], second["delivery_id"]) == ("/w==", "d-2")
    capsys.readouterr()
    code, text = say("spool", "export")
    assert code == 1, "one of them is no text"
    (tmp_path / "lines").write_text(text)
    assert run("receive", "main", str(tmp_path / "lines"))[1]["received"] == 1
    assert bodies() == ['{ "n" : 1.10, "x": "é" }'.encode()]
    assert Receipt.objects.get().idempotency_key == "d-1"

    assert run("spool", "discard", first["name"], "--reason", "it is in", "--yes") == (
        0,
        {"discarded": [first["name"]], "refused": []},
    )
    assert [one.name for one in set_aside.found()] == [second["name"]]
    entry = AuditEntry.objects.get(action="spool.discard")
    assert (entry.target, entry.reason) == (first["name"], "it is in")
    assert run("spool", "discard", first["name"])[0] == 1


def test_damaged_bytes_can_be_exported_and_discarded_and_not_given_back(github: Ingress) -> None:
    spooled(github, ("d-1", b'{"n":1}'))
    spooling.forget()
    (one,) = files.journals()
    one.path.write_bytes(one.path.read_bytes()[:-1])
    Drain().run()
    (aside,) = set_aside.found()
    assert run("spool", "retry", aside.name)[1]["refused"][0]["code"] == "torn"
    assert run("spool", "export", aside.name)[1]["exported"][0]["body_base64"]
    assert run("spool", "discard", aside.name, "--reason", "x", "--yes")[0] == 0
    assert files.aside_files() == []


def test_the_health_of_a_host_names_what_its_spool_set_aside_and_what_waits_in_it(
    github: Ingress, monkeypatch: pytest.MonkeyPatch
) -> None:
    activation.activate("test")
    assert run("health")[0] == 0
    spooled(github, ("d-1", b"{}"))
    assert run("health")[0] == 0, "it is only just there"
    monkeypatch.setattr(spool_status, "DRAINING_SECONDS", 1e-9)
    assert run("health")[1]["reasons"][0]["code"] == "spool_waits"
    with refusing("d-1"):
        run("spool", "drain")
    code, health = run("health")
    assert (code, health["ready"], [one["code"] for one in health["reasons"]]) == (1, True, ["spool_set_aside"])
    assert Client().get("/progressz").json()["code"] == "spool_set_aside"
    text = Client().get("/metrics").content.decode()
    assert "headrace_spool_aside_files 1.0" in text
    assert 'headrace_spool_drained_total{outcome="refused"}' in text
    run("spool", "retry")
    run("spool", "drain")
    assert run("health")[0] == 0


def test_while_the_database_is_away_nothing_leaves_the_spool(github: Ingress) -> None:
    spooled(github, ("d-1", b"{}"))
    drainer = Drain()
    with away(), mock.patch("projection.database.outages.probe_writes", side_effect=GONE), pytest.raises(OperationalError):
        drainer.run()
    assert not files.is_empty()
    with mock.patch.object(drain, "_database_now", side_effect=GONE):
        code, answered = run("spool", "drain")
    assert (code, answered["refused"][0]["code"]) == (1, "database_unavailable")
    assert drainer.run() == {"accepted": 1}


def test_one_process_drains_at_a_time(github: Ingress) -> None:
    spooled(github, ("d-1", b"{}"))
    with drain.alone() as ours:
        assert ours
        with drain.alone() as also:
            assert not also
        code, answered = run("spool", "drain")
        assert (code, answered["refused"][0]["code"]) == (1, "in_use")
    assert run("spool", "drain")[1]["drained"] == {"accepted": 1}


# ---- last known endpoints


def unreachable() -> Any:
    """The database does not even answer what the endpoints are."""
    return mock.patch("connectors.ingress.endpoint_facts._bounded.fetch", side_effect=GONE)


def test_a_web_process_that_was_just_started_knows_the_endpoints_of_before(github: Ingress, spool: Path) -> None:
    open_endpoint(slug="other")
    Keeper().look()
    text = (spool / last_known.FILE).read_text()
    assert github.secret not in text
    assert (spool / last_known.FILE).stat().st_mode & 0o777 == 0o600
    with unreachable(), away():
        assert answer(send(github, "d-1"))["spooled"] is True
        assert github.post(b"{}", {"X-Hub-Signature-256": "sha256=00"}).status_code == 401
        assert github.post(b"{}", path="/ingress/default/other").status_code == 503
        assert github.post(b"{}", path="/ingress/default/unheard-of").status_code == 503
    assert Drain().run() == {"accepted": 1}


def test_of_an_endpoint_that_does_not_spool_nothing_old_is_believed() -> None:
    open_endpoint(slug="other")
    name = ("default", "other")
    assert last_known.find(name) is not None
    assert last_known.last_known(name) is not None
    with mock.patch.object(endpoint_facts.find, "_seconds", 0.0), unreachable(), pytest.raises(OperationalError):
        last_known.find(name)


def test_facts_older_than_a_day_and_a_broken_file_are_no_facts(github: Ingress, spool: Path) -> None:
    Keeper().look()
    known = json.loads((spool / last_known.FILE).read_text())
    for text in (json.dumps(known | {"at": known["at"] - last_known.LONGEST_SECONDS}), "{", "[]", '{"at":1,"rows":[[]]}'):
        (spool / last_known.FILE).write_text(text)
        with unreachable(), away():
            assert send(github, "d-1").status_code == 503
    assert files.is_empty()


def test_a_secret_that_ended_meanwhile_verifies_nothing(github: Ingress) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    sealed = secrets.encrypt([{"secret": github.secret, "expires_at": soon}, {"secret": "x" * 20, "expires_at": None}])
    Endpoint.objects.filter(id=github.endpoint.id).update(secrets=sealed)
    Keeper().look()
    with unreachable(), away():
        assert send(github, "d-1").status_code == 202
        with mock.patch("connectors.ingress.endpoint_facts.datetime") as later:
            later.now.return_value = datetime.now(UTC) + timedelta(minutes=2)
            assert send(github, "d-2").status_code == 401


def test_this_process_own_facts_count_where_they_are_newer(github: Ingress) -> None:
    """The endpoint was made after the file was written; deliveries came through this process."""
    known = last_known.find(("default", "main"))
    assert known is not None
    with mock.patch.object(endpoint_facts.find, "_seconds", 0.0), unreachable():
        found = last_known.find(("default", "main"))
    assert found is not None
    assert (found.id, found.secrets) == (github.endpoint.id, (github.secret,))
    factories.endpoint(github.pack, "young")
    assert last_known.last_known(("default", "young")) is None


# ---- what is visible


def test_metrics_probe_and_overview_tell_what_waits(github: Ingress, monkeypatch: pytest.MonkeyPatch) -> None:
    activation.activate("test")
    console = console_world.client("viewer")
    assert Client().get("/readyz").json() == {"ready": True}
    spooled(github, ("d-1", b"{}"))
    waiting = Client().get("/readyz").json()["spool"]
    assert waiting["waiting_bytes"] > len(b"{}")
    assert waiting["limit_bytes"] == 256 * 1024**2
    text = Client().get("/metrics").content.decode()
    assert f"headrace_spool_bytes {float(waiting['waiting_bytes'])}" in text
    assert "headrace_spool_aside_files 0.0" in text
    assert "spool of this host" not in console.get("/admin/").content.decode(), "it is only just there"
    monkeypatch.setattr(spool_status, "DRAINING_SECONDS", 0.0)
    assert "Deliveries have been waiting in this host" in console.get("/admin/").content.decode()
    spooling.forget()
    (one,) = files.journals()
    one.path.write_bytes(one.path.read_bytes()[:-1])
    Drain().run()
    assert "1 files set aside" in console.get("/admin/").content.decode()
    assert Client().get("/readyz").json()["spool"]["aside_files"] == 1


def test_a_full_disk_of_a_host_is_reported_while_the_host_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    activation.activate("test")
    assert run("health")[0] == 0
    monkeypatch.setattr(spool_status, "LEAST_FREE_BYTES", 2**62)
    code, health = run("health")
    assert (code, health["ready"], [one["code"] for one in health["reasons"]]) == (1, True, ["state_disk_full"])
    assert Client().get("/progressz").json()["code"] == "state_disk_full"
    ready = Client().get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True), "it stores deliveries in the database"
    assert ready.json()["spool"]["free_bytes"] > 0
    assert [one["code"] for one in ready.json()["warnings"]] == ["state_disk_full"]
    assert "headrace_state_disk_free_bytes " in Client().get("/metrics").content.decode()
    assert "The disk under HEADRACE_STATE_DIR is full" in console_world.client("viewer").get("/admin/").content.decode()


def test_the_disk_of_a_spool_that_does_not_exist_yet_is_that_of_its_parent(settings: Settings, tmp_path: Path) -> None:
    settings.HEADRACE_SPOOL_DIR = tmp_path / "not" / "yet"
    assert spool_status.status().free_bytes > 0


def test_a_scrape_without_database_tells_the_spool(github: Ingress) -> None:
    spooled(github, ("d-1", b"{}"))
    with mock.patch("ops_ui.monitoring.health.database_answers", return_value=False):
        text = Client().get("/metrics").content.decode()
    assert "headrace_database_up 0.0" in text
    assert "headrace_spool_bytes 0.0" not in text
    assert 'headrace_spooled_total{pack="github"}' in text
