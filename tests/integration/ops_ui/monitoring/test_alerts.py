"""Alerts: raised once, recovered once, told once whatever processes look; what is not taken is tried again."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from connectors import http_client
from ops_ui import watch
from ops_ui.models import Alert, AlertMessage, SignatureFailures
from ops_ui.monitoring import alert_messages, alerts, progress, signature_failures, spool_status
from ops_ui.monitoring.progress import Finding
from projection.database import clock
from projection.states import State
from tests.support import ingress, rows
from tests.support.receiver import Receiver, Reply
from tests.support.rivals import PATIENCE_SECONDS
from tests.support.server_work import full_scans, texts_recorded

pytestmark = pytest.mark.usefixtures("database")

SECRET = "whsec_" + base64.b64encode(b"the alerts secret of the suite!!").decode()
STUCK = Finding("progress", "no_worker", "Work is due, and no worker is alive.")


@pytest.fixture
def told(receiver: Receiver, settings: Settings) -> Iterator[Receiver]:
    """Alerts go to a webhook."""
    settings.HEADRACE_ALERT_URL, settings.HEADRACE_ALERT_SECRET = receiver.url("/alerts?token=hush"), SECRET
    settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    http_client.close_clients()
    yield receiver
    http_client.close_clients()


@pytest.fixture(autouse=True)
def found(database: None, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the progress of the installation is said to be."""
    findings: list[Finding] = []
    monkeypatch.setattr(progress, "findings", lambda: list(findings))
    signature_failures._seen.clear()
    alerts.make()
    return findings


def states() -> dict[str, bool]:
    return {one.name: one.is_raised for one in alerts.stored()}


def back(**columns: int) -> None:
    """Time passes: these columns of every row move into the past."""
    for column, seconds in columns.items():
        with connection.cursor() as cursor:
            table = AlertMessage._meta.db_table if column == "NextTryAt" else Alert._meta.db_table
            cursor.execute(f"UPDATE {table} SET {column} = {column} - INTERVAL %s SECOND", [seconds])


def ago(seconds: float) -> datetime:
    return clock.now() - timedelta(seconds=seconds)


def body(received: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(received.body)
    return parsed


class TestTransitions:
    def test_a_cause_raises_its_alert_once(self, found: list[Finding]) -> None:
        assert alerts.look() == []
        found.append(STUCK)
        (made,) = alerts.look()
        assert (made.alert, made.code, made.state) == ("progress", "no_worker", "raised")
        assert alerts.look() == []
        assert states() == {name: name == "progress" for name in alerts.NAMES}

    def test_it_recovers_once_after_its_cause_stayed_away(self, found: list[Finding]) -> None:
        found.append(STUCK)
        alerts.look()
        found.clear()
        assert alerts.look() == []
        assert alerts.look() == []
        back(ClearSince=120)
        (made,) = alerts.look()
        assert (made.alert, made.state) == ("progress", "recovered")
        assert alerts.look() == []

    def test_a_cause_that_comes_and_goes_is_one_alert(self, found: list[Finding]) -> None:
        found.append(STUCK)
        alerts.look()
        found.clear()
        alerts.look()
        back(ClearSince=119)
        found.append(STUCK)
        assert alerts.look() == []
        found.clear()
        assert alerts.look() == []
        assert states()["progress"] is True
        back(ClearSince=119)
        assert alerts.look() == [], "it counts from again"

    def test_a_restart_repeats_nothing(self, found: list[Finding]) -> None:
        found.append(STUCK)
        alerts.look()
        alerts.make()
        assert alerts.look() == []

    def test_of_several_that_look_at_once_one_makes_the_transition(self, found: list[Finding], told: Receiver) -> None:
        found.append(STUCK)
        known, now = alerts.stored(), clock.now()
        progress_alert = next(one for one in known if one.name == "progress")
        cause = alerts.Cause("no_worker", "…")
        made = [alerts._change(progress_alert, cause, now) for _ in range(3)]
        assert [one is not None for one in made] == [True, False, False]
        assert AlertMessage.objects.count() == 1

    def test_a_lost_swap_leaves_no_message(self, found: list[Finding], told: Receiver) -> None:
        stale = alerts.Known("progress", False, 99, None, clock.now())
        assert alerts._change(stale, alerts.Cause("no_worker", "…"), clock.now()) is None
        assert AlertMessage.objects.count() == 0
        assert states()["progress"] is False

    def test_age_and_progress_are_two_alerts(self, found: list[Finding]) -> None:
        found += [Finding("age", "work_too_old", "Old."), STUCK]
        assert [made.alert for made in alerts.look()] == ["age", "progress"]


class TestCauses:
    def test_dead_letters_of_the_last_hour(self, settings: Settings) -> None:
        settings.HEADRACE_ALERT_DEAD_LETTERS = 2
        for age in (10, 3700):
            rows.work_row(rows.event_row(source_id=str(age)), State.DEAD, terminal_at=ago(age))
        assert alerts.find_causes() == {}
        rows.work_row(rows.event_row(source_id="new"), State.DEAD, terminal_at=ago(20))
        assert list(alerts.find_causes()) == ["dead_letters"]

    def test_a_full_disk_under_the_state_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert alerts.find_causes() == {}
        monkeypatch.setattr(spool_status, "LEAST_FREE_BYTES", 2**62)
        cause = alerts.find_causes()["state_disk"]
        assert cause.code == "state_disk_full"
        assert "The disk under HEADRACE_STATE_DIR is full" in cause.reason

    def test_a_full_disk_of_one_host_is_not_over_because_other_hosts_look(self) -> None:
        known = alerts.Known("state_disk", True, 1, ago(29 * 60), ago(3600))
        assert alerts.decide(known, None, clock.now()) is alerts.Change.NONE
        assert alerts.decide(replace(known, clear_since=ago(31 * 60)), None, clock.now()) is alerts.Change.RECOVER

    def test_failed_signatures_of_the_last_minutes(self, settings: Settings) -> None:
        settings.HEADRACE_ALERT_SIGNATURE_FAILURES = 3
        site = ingress.open_endpoint()
        for _ in range(3):
            assert site.post(b"{}", headers={}).status_code == 401
        assert alerts.find_causes() == {}, "the process has not told yet"
        signature_failures.tell()
        signature_failures.tell()
        assert signature_failures.recent() == [("default/main", 3)]
        assert "default/main" in alerts.find_causes()["signature_failures"].reason
        with connection.cursor() as cursor:
            cursor.execute("UPDATE headrace_signature_failures SET Minute = Minute - INTERVAL 11 MINUTE")
        assert alerts.find_causes() == {}

    def test_processes_add_their_failures_up(self) -> None:
        for _ in range(2):
            signature_failures._seen["default/main"] = 2
            signature_failures.tell()
        assert sum(row.failures for row in SignatureFailures.objects.all()) == 4

    def test_what_is_told_while_the_database_is_away_is_told_the_next_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        signature_failures._seen["default/main"] = 2

        def broken(*_: object, **__: object) -> int:
            raise ConnectionError

        with monkeypatch.context() as patched:
            patched.setattr(signature_failures, "run_unit", broken)
            with pytest.raises(ConnectionError):
                signature_failures.tell()
        signature_failures.tell()
        assert signature_failures.recent() == [("default/main", 2)]

    def test_nothing_of_a_stranger_stands_in_the_row(self) -> None:
        site = ingress.open_endpoint()
        site.post(b"{}", headers={"X-Signature": "stranger"}, path=f"{site.path}?token=stranger")
        signature_failures.tell()
        assert [row.endpoint for row in SignatureFailures.objects.all()] == ["default/main"]


class TestTurns:
    def test_one_process_has_the_turn_of_half_a_minute(self) -> None:
        assert [watch.look() for _ in range(3)] == [True, False, False]
        back(ChangedAt=30)
        assert watch.task(1) is True

    def test_two_that_ask_at_once(self) -> None:
        """Each on a connection of its own; the database decides."""
        got: list[bool] = []
        barrier = threading.Barrier(4)

        def ask() -> None:
            barrier.wait(PATIENCE_SECONDS)
            got.append(alerts.take_turn())
            connection.close()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert sorted(got) == [False, False, False, True]

    def test_a_look_that_is_not_ours_costs_one_statement(self) -> None:
        watch.look()
        with texts_recorded() as texts:
            assert watch.look() is False
        assert len(texts) == 1

    def test_a_look_reads_no_table_from_end_to_end(self) -> None:
        alerts.take_turn()
        with texts_recorded() as texts:
            alerts.look()
            alert_messages.send_due()
        assert 3 <= len(texts) <= 10
        small = ("headrace_alert`", "ConnectorRoute", "ConnectorWorker`")
        assert [text for text in full_scans(texts) if not any(name in text for name in small)] == []


class TestWebhook:
    def test_it_is_signed_and_says_what_is_wrong(self, found: list[Finding], told: Receiver) -> None:
        found.append(STUCK)
        assert watch.look() is True
        received = told.requests.get(timeout=PATIENCE_SECONDS)
        Webhook(SECRET).verify(received.body, dict(received.headers))
        assert received.path == "/alerts?token=hush"
        assert body(received)["type"] == "alert.raised"
        data = body(received)["data"]
        assert (data["alert"], data["code"], data["reason"]) == ("progress", "no_worker", STUCK.reason)
        assert received.headers["webhook-id"].startswith("alert_")
        assert AlertMessage.objects.get().sent_at is not None

    def test_recovery_is_told_too(self, found: list[Finding], told: Receiver) -> None:
        found.append(STUCK)
        alerts.look()
        found.clear()
        alerts.look()
        back(ClearSince=120)
        alerts.look()
        assert alert_messages.send_due() == 2
        first, second = told.requests.get(), told.requests.get()
        assert [body(one)["type"] for one in (first, second)] == ["alert.raised", "alert.recovered"]
        assert "now recovered" in body(second)["data"]["reason"]

    def test_one_that_was_not_taken_is_tried_again_under_its_id(
        self, found: list[Finding], told: Receiver, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told.replies.put(Reply(503))
        found.append(STUCK)
        alerts.look()
        assert alert_messages.send_due() == 0
        assert alert_messages.send_due() == 0, "not at once"
        message = AlertMessage.objects.get()
        assert (message.attempts, message.sent_at) == (1, None)
        assert "503" in str(message.last_error)
        back(NextTryAt=60)
        assert alert_messages.send_due() == 1
        assert alert_messages.send_due() == 0
        first, second = told.requests.get(), told.requests.get()
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert "hush" not in capsys.readouterr().err + str(message.last_error)

    def test_after_a_day_it_is_given_up(self, found: list[Finding], told: Receiver) -> None:
        told.reply = Reply(500)
        found.append(STUCK)
        alerts.look()
        AlertMessage.objects.update(created_at=ago(alert_messages.GIVE_UP_SECONDS + 1))
        assert alert_messages.send_due() == 0
        message = AlertMessage.objects.get()
        assert (message.next_try_at, message.sent_at) == (None, None)
        assert "500" in str(message.last_error)

    def test_a_message_that_another_process_tries_is_left_to_it(self, found: list[Finding], told: Receiver) -> None:
        found.append(STUCK)
        alerts.look()
        message = AlertMessage.objects.get()
        begun = {"id": message.id, "attempts": 0, "pause": 60}
        assert [alert_messages._execute("begin_message", **begun) for _ in range(2)] == [1, 0]
        assert alert_messages.send_due() == 0
        assert told.requests.empty()

    def test_a_private_address_is_refused_unless_allowed(self, found: list[Finding], told: Receiver, settings: Settings) -> None:
        settings.HEADRACE_FORWARD_ALLOWED_NETWORKS = []
        http_client.close_clients()
        found.append(STUCK)
        alerts.look()
        assert alert_messages.send_due() == 0
        assert "HEADRACE_FORWARD_ALLOWED_NETWORKS" in str(AlertMessage.objects.get().last_error)
        assert told.requests.empty()

    def test_a_receiver_that_never_answers_costs_a_bounded_time(
        self, found: list[Finding], told: Receiver, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        monkeypatch.setattr(alert_messages, "SEND_SECONDS", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            settings.HEADRACE_ALERT_URL = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            found.append(STUCK)
            alerts.look()
            assert alert_messages.send_due() == 0
        assert "Timeout" in str(AlertMessage.objects.get().last_error)

    def test_without_a_channel_there_is_a_log_line_alone(self, found: list[Finding], capsys: pytest.CaptureFixture[str]) -> None:
        found.append(STUCK)
        alerts.look()
        assert AlertMessage.objects.count() == 0
        line = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert (line["event"], line["alert"], line["state"], line["reason"]) == ("alert", "progress", "raised", STUCK.reason)


class TestMail:
    def test_it_says_the_same_in_words(self, found: list[Finding], settings: Settings) -> None:
        settings.HEADRACE_ALERT_MAIL = ["op@example.com", "two@example.com"]
        settings.HEADRACE_PUBLIC_URL = "https://hooks.example.com"
        found.append(STUCK)
        alerts.look()
        assert alert_messages.send_due() == 1
        (sent,) = mail.outbox
        assert sent.to == ["op@example.com", "two@example.com"]
        assert sent.subject == "Headrace https://hooks.example.com: progress raised"
        assert STUCK.reason in sent.body

    def test_over_smtp(self, found: list[Finding], settings: Settings) -> None:
        with mail_server() as (port, received):
            settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
            settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 5
            settings.HEADRACE_ALERT_MAIL = ["op@example.com"]
            found.append(STUCK)
            alerts.look()
            assert alert_messages.send_due() == 1
        assert "Subject: Headrace" in "".join(received)
        assert "rcpt to:<op@example.com>" in "".join(received).lower()

    def test_a_mail_server_that_is_away_is_tried_again(self, found: list[Finding], settings: Settings) -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 5
        settings.HEADRACE_ALERT_MAIL = ["op@example.com"]
        found.append(STUCK)
        alerts.look()
        assert alert_messages.send_due() == 0
        message = AlertMessage.objects.get()
        assert message.next_try_at is not None
        assert "ConnectionRefused" in str(message.last_error)


class mail_server:
    """Takes one mail; `received`: the lines that came."""

    def __enter__(self) -> tuple[int, list[str]]:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._received: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self._listener.getsockname()[1], self._received

    def __exit__(self, *_: object) -> None:
        self._thread.join(PATIENCE_SECONDS)
        self._listener.close()

    def _serve(self) -> None:
        peer, _ = self._listener.accept()
        with peer, peer.makefile("rw", encoding="utf-8", newline="") as stream:

            def say(text: str) -> None:
                stream.write(f"{text}\r\n")
                stream.flush()

            say("220 ready")
            in_text = False
            for line in stream:
                self._received.append(line)
                if in_text:
                    if line == ".\r\n":
                        in_text = False
                        say("250 taken")
                elif line.upper().startswith("DATA"):
                    in_text = True
                    say("354 go on")
                elif line.upper().startswith("QUIT"):
                    say("221 bye")
                    return
                else:
                    say("250 ok")


def test_a_raised_alert_is_a_gauge(found: list[Finding]) -> None:
    found.append(STUCK)
    alerts.look()
    text = Client().get("/metrics").content.decode()
    assert 'headrace_alert_raised{alert="progress"} 1.0' in text
    assert 'headrace_alert_raised{alert="age"} 0.0' in text
