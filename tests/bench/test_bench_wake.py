"""`bench wake` at a small size, with gunicorn and the cluster as they run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from statistics import median
from unittest import mock

import pytest
from django.db import connection

from connectors.bench import wake
from connectors.bench.receiver import receiving
from connectors.bench.workbench import BenchFailed
from tests.support import commands

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("database")]

needs_a_relay = pytest.mark.skipif("ssl=" in os.environ.get("HEADRACE_DATABASE_URL", ""), reason="nobody can count inside TLS")


@needs_a_relay
def test_an_idle_system_is_measured_asleep_and_waking_up() -> None:
    code, answer = commands.run("bench", "wake", "--deliveries", "3", "--idle", "3")
    assert code == 0, answer
    assert len(answer["runs"]) == answer["deliveries"] == 3
    assert answer["wake_ms"] == median(answer["runs"])
    assert 0 < answer["wake_ms"] <= answer["longest_wake_ms"] == max(answer["runs"])
    assert answer["polling_ms"] > 0
    assert answer["polls_per_s"] == 3
    assert answer["idle_statements_per_s"] > 1  # loops that poll every second cannot be overlooked


@contextmanager
def web(status: int) -> Iterator[int]:
    """A web server that answers every delivery so, and starts no flow; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"because")

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "what"), [(202, "delivery-1 was stored, and its flow did not start"), (503, "delivery-1 was answered 503: because")]
)
def test_a_delivery_that_starts_no_flow_fails_the_run(monkeypatch: pytest.MonkeyPatch, status: int, what: str) -> None:
    monkeypatch.setattr(wake, "PATIENCE_SECONDS", 0.5)
    with web(status) as port, receiving() as receiver, pytest.raises(BenchFailed, match=what):
        wake._deliver(port, "delivery-1", "secret", receiver)


def test_a_database_behind_tls_is_refused() -> None:
    options = connection.settings_dict["OPTIONS"] | {"ssl_mode": "REQUIRED"}
    with mock.patch.dict(connection.settings_dict, OPTIONS=options):
        code, answer = commands.run("bench", "wake")
    assert (code, answer["error"]["code"]) == (2, "configuration")


@pytest.mark.parametrize("option", ["--deliveries=0", "--idle=0", "--idle=nan"])
def test_sizes_that_measure_nothing_are_refused(option: str) -> None:
    code, answer = commands.run("bench", "wake", option)
    assert (code, answer["error"]["code"]) == (2, "usage")
