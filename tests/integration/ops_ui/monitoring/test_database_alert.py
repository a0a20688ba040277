"""The alert about the database itself: told by each host once, also across a restart, though nothing can be stored."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from connectors import http_client
from ops_ui import watch
from ops_ui.monitoring import health
from ops_ui.monitoring.database_alert import CODES, FILE, DatabaseAlert
from ops_ui.monitoring.health import NotReady
from tests.support.receiver import Receiver, Reply

SECRET = "whsec_" + base64.b64encode(b"the alerts secret of the suite!!").decode()
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
FULL = NotReady("database_full", "The disk of the database is full (error 1114).")


@pytest.fixture(autouse=True)
def told(receiver: Receiver, settings: Settings) -> Iterator[Receiver]:
    settings.HEADRACE_ALERT_URL, settings.HEADRACE_ALERT_SECRET = receiver.url("/alerts"), SECRET
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    http_client.close_clients()
    yield receiver
    http_client.close_clients()


@pytest.fixture
def alert(tmp_path: Path) -> DatabaseAlert:
    made = DatabaseAlert(tmp_path / FILE)
    assert made.is_ours()
    return made


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def messages(receiver: Receiver) -> list[tuple[str, str]]:
    found = []
    while not receiver.requests.empty():
        received = receiver.requests.get_nowait()
        Webhook(SECRET).verify(received.body, dict(received.headers))
        parsed = json.loads(received.body)
        found.append((parsed["type"], parsed["data"]["code"]))
    return found


@pytest.mark.parametrize("code", sorted(CODES))
def test_it_is_raised_once_after_a_minute_and_recovers_once(alert: DatabaseAlert, told: Receiver, code: str) -> None:
    problem = NotReady(code, "why")
    for seconds in (0, 30):
        assert alert.look(problem, at(seconds)) is None
    raised = alert.look(problem, at(60))
    assert raised is not None
    assert (raised.alert, raised.code, raised.reason.endswith(": why")) == ("database", code, True)
    assert alert.look(problem, at(90)) is None
    assert alert.look(None, at(120)) is None, "it may come again"
    assert alert.look(problem, at(150)) is None
    assert alert.look(None, at(180)) is None
    recovered = alert.look(None, at(300))
    assert recovered is not None
    assert recovered.sentence == "Raised at 2026-12-01T12:01:00.000000Z, now recovered."
    assert alert.look(None, at(330)) is None
    assert messages(told) == [("alert.raised", code), ("alert.recovered", "recovered")]


def test_a_restart_of_the_database_and_other_reasons_to_be_not_ready_raise_nothing(alert: DatabaseAlert, told: Receiver) -> None:
    for seconds in range(0, 300, 60):
        assert alert.look(FULL, at(seconds)) is None
        assert alert.look(None, at(seconds + 30)) is None
    for seconds in (600, 700):
        assert alert.look(NotReady("migrations_missing", "2 migrations are not applied."), at(seconds)) is None
    assert messages(told) == []


def test_what_was_not_taken_is_sent_again_under_the_same_id(alert: DatabaseAlert, told: Receiver) -> None:
    told.replies.put(Reply(503))
    for seconds in (0, 60, 90, 120):
        alert.look(FULL, at(seconds))
    ids = [told.requests.get_nowait().headers["webhook-id"] for _ in range(2)]
    assert ids[0] == ids[1]
    assert told.requests.empty()


def test_one_process_of_a_host_tells_and_the_next_one_goes_on_where_it_ended(alert: DatabaseAlert, told: Receiver) -> None:
    second = DatabaseAlert(alert.path)
    assert not second.is_ours()
    for seconds in (0, 60):
        alert.look(FULL, at(seconds))
    assert alert._lock is not None
    alert._lock.close()
    assert second.is_ours()
    assert second.look(FULL, at(90)) is None
    for seconds in (120, 240):
        second.look(None, at(seconds))
    assert messages(told) == [("alert.raised", "database_full"), ("alert.recovered", "recovered")]


def test_it_is_told_where_nothing_can_be_kept(tmp_path: Path, told: Receiver) -> None:
    alert = DatabaseAlert(tmp_path / "missing" / FILE)
    assert alert.is_ours()
    for seconds in (0, 60, 120):
        alert.look(FULL, at(seconds))
    assert messages(told) == [("alert.raised", "database_full")]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"raised": true}', b'{"raised": true, "at": "soon"}', b"\xff"])
def test_a_file_that_was_cut_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    alert = DatabaseAlert(tmp_path / FILE)
    assert alert.is_ours()
    assert [alert.look(FULL, at(seconds)) is not None for seconds in (0, 60)] == [False, True]


def test_the_watch_asks_for_readiness(alert: DatabaseAlert, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(health, "readiness", lambda: asked.append(True))
    watch.look_at_the_database(alert)
    assert asked == [True]
    watch.look_at_the_database(DatabaseAlert(alert.path))
    assert asked == [True], "another process of the host tells"
