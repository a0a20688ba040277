"""Probes and metrics: alive without a database, ready only when everything is, numbers as they are stored."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from ops_ui.monitoring import health
from projection.admission import activation
from projection.models import ProjectionProtocol
from projection.runtime.library_log import LibraryLine
from projection.states import State
from tests.support import console_world, factories, rows


def samples(client: Client) -> dict[tuple[str, str], float]:
    """Value by (name, label values joined by `/`)."""
    response = client.get("/metrics")
    assert response.status_code == 200
    return {
        (sample.name, "/".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(response.content.decode())
        for sample in family.samples
    }


def test_alive_needs_no_database() -> None:
    response = Client().get("/healthz")
    assert (response.status_code, response.json()) == (200, {"alive": True})
    assert response.headers["Cache-Control"].startswith("max-age=0")
    assert Client().post("/healthz").status_code == 405


HOSTS = ["10.42.8.201:8765", "[fd00::7]:8765", "headrace.monitoring.svc.cluster.local", "under_score", 'evil.example"><script>', ""]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/progressz", "/metrics"])
def test_a_probe_is_answered_by_any_name_and_without_tls(path: str, host: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["hooks.example.com"], True
    activation.activate("test")
    response = Client().get(path, headers={"host": host})
    assert response.status_code == 200
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert host == "" or host not in response.content.decode()


@pytest.mark.parametrize("host", HOSTS)
def test_a_strangers_host_gets_400_and_writes_one_short_line(host: str, caplog: pytest.LogCaptureFixture, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["hooks.example.com"]
    assert Client().get("/admin/login/", headers={"host": host + "x" * 5_000}).status_code == 400
    (line,) = [LibraryLine().format(record) for record in caplog.records if record.name == "django.security.DisallowedHost"]
    assert "Invalid HTTP_HOST header" in line
    assert "Traceback" not in line
    assert len(line) < 1_000


@pytest.mark.usefixtures("database")
class TestReady:
    def test_ready_when_migrated_and_activated(self) -> None:
        activation.activate("test")
        assert Client().get("/readyz").json() == {"ready": True}

    def test_not_ready_before_activation(self) -> None:
        ProjectionProtocol.objects.all().delete()
        response = Client().get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "not_activated")
        assert "activate_projection" in response.json()["reason"]

    def test_not_ready_with_a_missing_migration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(health, "_migrations_of_this_code", lambda: frozenset({("projection", "9999_next")}))
        response = Client().get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "migrations_missing")
        assert "projection.9999_next" in response.json()["reason"]

    def test_not_ready_without_its_database_and_says_no_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken() -> Any:
            probe = connections["default"].copy()
            probe.settings_dict["HOST"], probe.settings_dict["PORT"] = "127.0.0.1", "1"
            probe.settings_dict["PASSWORD"] = "hush"
            return probe

        monkeypatch.setattr(health, "_probe_connection", broken)
        response = Client().get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "database_unreachable")
        assert b"hush" not in response.content

    def test_the_probe_waits_two_seconds_at_most(self) -> None:
        options = health._probe_connection().settings_dict["OPTIONS"]
        assert {options[name] for name in ("connect_timeout", "read_timeout", "write_timeout")} == {2}
        assert connections["default"].settings_dict["OPTIONS"].get("read_timeout") != 2


@pytest.mark.usefixtures("database")
class TestMetrics:
    def test_gauges_are_what_is_stored(self) -> None:
        pack = factories.install()
        factories.receipt(pack, "{}")
        for state in (State.PENDING, State.DEAD, State.DEAD):
            rows.work_row(rows.event_row(source_id=os.urandom(4).hex()), state)
        console_world.worker("worker")
        found = samples(Client())
        assert found["headrace_database_up", ""] == 1
        assert found["headrace_receipts", "pending"] == 1
        assert found["headrace_work_items", "dead"] == 2
        assert found["headrace_dead_letters", ""] == 2
        assert found["headrace_oldest_waiting_seconds", "route/route"] > 0
        assert found["headrace_oldest_waiting_seconds", "retry/retry"] == 0
        assert (found["headrace_workers_alive", "worker"], found["headrace_workers_alive", "router"]) == (1, 0)

    def test_answers_are_counted_by_area(self) -> None:
        client = Client()
        before = samples(client).get(("headrace_http_requests_total", "console/console/200"), 0)
        client.get("/admin/login/")
        assert samples(client)["headrace_http_requests_total", "console/console/200"] == before + 1

    def test_a_scrape_without_database_still_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from django.db import OperationalError

        def broken() -> Any:
            raise OperationalError(2002, "gone")

        monkeypatch.setattr("projection.database.clock.now", broken)
        assert samples(Client())["headrace_database_up", ""] == 0

    def test_a_scrape_of_a_frozen_database_answers_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It takes the connection and says nothing: without a time-out of its own the scrape would wait for good."""
        with socket.create_server(("127.0.0.1", 0)) as frozen:
            probe = connections["default"].copy()
            probe.settings_dict["HOST"], probe.settings_dict["PORT"] = "127.0.0.1", str(frozen.getsockname()[1])
            probe.settings_dict["OPTIONS"] = health._probe_connection().settings_dict["OPTIONS"]
            monkeypatch.setattr(health, "_probe_connection", lambda: probe)
            since = time.monotonic()
            assert samples(Client())["headrace_database_up", ""] == 0
            assert time.monotonic() - since < 2 * health.PROBE_TIMEOUT_SECONDS + 1


MULTI_PROCESS = """
import os, django
django.setup()
from prometheus_client import generate_latest
from ops_ui.monitoring import metrics
for _ in range(2):
    if os.fork() == 0:
        metrics.REQUESTS.labels("console", "console", "200").inc()
        os._exit(0)
    os.wait()
print(generate_latest(metrics._process_registry()).decode())
"""


def test_processes_of_one_host_are_added_up(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "ops_ui.settings"}
    done = subprocess.run([sys.executable, "-c", MULTI_PROCESS], env=environment, capture_output=True, text=True, check=True)
    assert 'headrace_http_requests_total{room="console",stage="console",status="200"} 2.0' in done.stdout


@pytest.mark.usefixtures("database")
def test_the_root_leads_to_the_console() -> None:
    response = Client().get("/")
    assert (response.status_code, response["Location"]) == (302, "/admin/")
