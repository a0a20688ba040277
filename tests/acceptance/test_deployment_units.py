"""The commands of the units run as systemd runs them: prepared once, a socket handed over, readiness told, SIGTERM to the head."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from ops_ui.config.environment import CHECKOUT, Bind
from ops_ui.start.supervisor import listen
from tests.acceptance.service import PATIENCE_SECONDS, Process, Service, own_database
from tests.support import deployment_files
from tests.support.deployment_files import UNITS, python_arguments, value
from tests.support.running import start_environment, state_folder

pytestmark = pytest.mark.acceptance

SOCKET_ACTIVATION = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""What systemd does for a service with a socket: descriptor 3, and the id of the process that it is for."""


class Host:
    """One host with the example's environment, in folders of the test's own."""

    def __init__(self, site: Service, notify: socket.socket, address: str, listener: socket.socket) -> None:
        self.site = site
        self._notify, self._address, self._listener = notify, address, listener
        self._counters = {"PROMETHEUS_MULTIPROC_DIR": str(site.folder / "metrics")}

    def prepare(self) -> None:
        for arguments in python_arguments(UNITS / "headrace-prepare.service"):
            done = subprocess.run(
                [sys.executable, *arguments], cwd=CHECKOUT, env=self.site.environment, capture_output=True, text=True,
                timeout=4 * PATIENCE_SECONDS, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr

    def start_web(self) -> Process:
        (arguments,) = python_arguments(UNITS / "headrace-web.service")
        fd = self._listener.fileno()
        return self.site._start(
            "web", ["-c", SOCKET_ACTIVATION, str(fd), *arguments], {"NOTIFY_SOCKET": self._address} | self._counters, [fd]
        )

    def start_cluster(self) -> Process:
        (arguments,) = python_arguments(UNITS / "headrace-cluster.service")
        return self.site._start("cluster", arguments, self._counters)

    def what_was_notified(self) -> str:
        return self._notify.recv(4096).decode()


@pytest.fixture
def host() -> Iterator[Host]:
    with ExitStack() as held:
        folder = held.enter_context(state_folder())
        url = held.enter_context(own_database(os.environ["HEADRACE_DATABASE_URL"]))
        listener = held.enter_context(closing(listen(Bind("127.0.0.1", 0))))
        notify = held.enter_context(closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)))
        notify.settimeout(PATIENCE_SECONDS)
        notify.bind(str(folder / "notify"))
        site = Service(folder, url, environment(folder, url), listener)
        held.callback(site.stop)
        yield Host(site, notify, str(folder / "notify"), listener)


def environment(folder: Path, url: str) -> dict[str, str]:
    """The example's, with its secrets and folders where the test may write."""
    texts = {"database_url": url, "secret_key": secrets.token_urlsafe(48), "encryption_keys": Fernet.generate_key().decode()}
    given = deployment_files.environment()
    (folder / "metrics").mkdir()
    for name, text in texts.items():
        path = folder / name
        path.write_text(text + "\n", encoding="ascii")
        given[f"HEADRACE_{name.upper()}_FILE"] = str(path)
    made = start_environment(folder) | given | {"HEADRACE_STATE_DIR": str(folder)}
    del made["HEADRACE_BIND"]
    return made


def get(host: Host, path: str) -> int:
    return host.site.request("GET", path, headers={"Host": "localhost", "X-Forwarded-Proto": "https"})[0]


def test_the_units_serve_and_stop(host: Host) -> None:
    host.prepare()
    host.prepare()  # as at each boot
    web = host.start_web()
    assert "READY=1" in host.what_was_notified()
    assert get(host, "/readyz") == 503, "activation is a step of its own, after every host runs the new code"
    host.site.manage("activate_projection")
    assert get(host, "/readyz") == 200
    assert get(host, "/static/ops_ui/console.css") == 200

    since = host.site.now()
    cluster = host.start_cluster()
    host.site.until_loops_run(since)
    for process, unit in ((web, "headrace-web.service"), (cluster, "headrace-cluster.service")):
        process.ask_to_stop()  # KillMode=mixed
        assert process.wait(float(value(UNITS / unit, "TimeoutStopSec"))) == 0
        host.site.until(lambda process=process: not process.group(), "nothing of it is left")


def test_a_request_waits_in_the_socket_while_the_web_server_restarts(host: Host) -> None:
    host.prepare()
    web = host.start_web()
    host.what_was_notified()
    assert get(host, "/healthz") == 200
    web.ask_to_stop()
    assert web.wait() == 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(get, host, "/healthz")
        host.start_web()
        assert waiting.result(PATIENCE_SECONDS) == 200
