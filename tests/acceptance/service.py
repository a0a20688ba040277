"""The product as a user runs it, for acceptance tests: gunicorn and the cluster as real processes on a database of their own.

The test holds the listening socket, as the supervisor does, so that deliveries wait in its queue while a web server is replaced.
Every process writes into a log of its own; the end of each is printed when the service ends, and pytest shows it for a failed test.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import MySQLdb
from cryptography.fernet import Fernet

from ops_ui.config.database_url import database
from ops_ui.config.environment import Bind
from ops_ui.start.database_server import connect
from ops_ui.start.prepare import SCHEMA_ONLY
from ops_ui.start.supervisor import listen
from tests.support import schema_copies
from tests.support.running import CHECKOUT, command_of, start_environment, state_folder, wait_until

PATIENCE_SECONDS = 45.0
POLL_SECONDS = 0.05
LOG_TAIL_CHARACTERS = 6000
GONE = {2002, 2003, 2006, 2013}
"""Error numbers of a database server that is away."""


class Process:
    """One part of the product, head of a process group of its own."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(fds),
                process_group=0,
            )
        self.pid = self._popen.pid

    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def ask_to_stop(self) -> None:
        """SIGTERM to the head, as the supervisor and every service manager do."""
        self._popen.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """The exit code of the head."""
        return self._popen.wait(seconds)

    def kill(self) -> None:
        """SIGKILL to the whole group, as a power cut would; returns once none of it is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(PATIENCE_SECONDS)
        wait_until(lambda: not self.group(), f"the killed {self.name} has ended")

    def group(self) -> dict[int, str]:
        """The group's live members: process id → command line."""
        return {pid: words for pid, pgid, state, words in _process_table() if pgid == self.pid and state != "Z"}

    def tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARACTERS:]


class Service:
    """An installation in a folder and on a database that are thrown away."""

    def __init__(self, folder: Path, database_url: str, environment: Mapping[str, str], listener: socket.socket) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.port: int = listener.getsockname()[1]
        self.processes: list[Process] = []
        self._listener = listener
        self._settings = database(database_url)
        self._connection: Any = None

    # ---- its processes

    def start_web(self) -> Process:
        """gunicorn under the project's own configuration."""
        metrics = self.folder / "metrics"
        metrics.mkdir(exist_ok=True)
        fd = self._listener.fileno()
        command = ["-m", "gunicorn", "--config", "python:ops_ui.gunicorn_conf", "--bind", f"fd://{fd}", "ops_ui.wsgi:application"]
        return self._start("web", command, {"PROMETHEUS_MULTIPROC_DIR": str(metrics)}, [fd])

    def start_cluster(self, **settings: str) -> Process:
        """`manage.py qcluster`; `settings` override those of the service."""
        # A lease of a few seconds is refused beside the flows' time-outs (headrace.E004); tests cannot wait for a longer one.
        return self._start("cluster", ["manage.py", "qcluster", "--skip-checks"], settings)

    def start_worker(self, **settings: str) -> Process:
        """`manage.py run_worker`, without checks as `start_cluster`."""
        code = "import django; django.setup(); from django.core.management import call_command; call_command('run_worker')"
        return self._start("worker", ["-c", code], settings)

    def start(self, **settings: str) -> tuple[Process, Process]:
        """Both, once the web server is ready and the loops of the cluster are registered."""
        since = self.now()
        web, cluster = self.start_web(), self.start_cluster(**settings)
        self.until_serving()
        self.until_loops_run(since)
        return web, cluster

    def manage(self, *arguments: str, expect: int = 0, seconds: float = PATIENCE_SECONDS) -> Any:
        """The JSON answer of a command."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments, "--json"],
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == expect, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    def configure(self, toml: str) -> None:
        path = self.folder / "configuration.toml"
        path.write_text(toml, encoding="utf-8")
        self.manage("config", "apply", str(path))

    def _start(self, name: str, command: Sequence[str], settings: Mapping[str, str], fds: Sequence[int] = ()) -> Process:
        log = self.folder / f"{name}-{len(self.processes)}.log"
        process = Process(name, [sys.executable, *command], self.environment | dict(settings), log, fds)
        self.processes.append(process)
        return process

    def stop(self) -> None:
        """End every process, and print what each said last."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            sys.stdout.write(f"==== {process.log.name}\n{process.tail()}\n")
        if self._connection is not None:
            self._connection.close()

    # ---- over HTTP

    def request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Status and answer of one request on a connection of its own: JSON parsed, anything else as text.

        Raises OSError when there is no whole answer.
        """
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)) as connection:
            try:
                connection.request(method, path, body or None, dict(headers or {}))
                response = connection.getresponse()
                text = response.read().decode("utf-8", "replace")
            except http.client.HTTPException as error:  # killed between the head of its answer and the body
                raise ConnectionError(f"the answer broke off: {error!r}") from error
            return response.status, json.loads(text) if response.headers.get_content_type() == "application/json" else text

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Any]:
        return self.request("POST", path, body, headers)

    # ---- its database, read by the test itself

    def fetch(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Rows of a statement of its own, committed state; connects again when the server was away."""
        for last in (False, True):
            try:
                with closing(self.connection().cursor()) as cursor:
                    cursor.execute(sql, arguments)
                    return list(cursor.fetchall())
            except MySQLdb.OperationalError as error:
                self._connection = None
                if last or error.args[0] not in GONE:
                    raise
        raise AssertionError("unreachable")

    def connection(self) -> Any:
        """The test's own connection; it commits each statement unless the test begins a transaction."""
        if self._connection is None:
            self._connection = self.new_connection()
        return self._connection

    def new_connection(self) -> Any:
        made = connect(self._settings, self._settings["NAME"])
        made.autocommit(True)
        return made

    def now(self) -> datetime:
        """The database's clock, naive UTC as stored."""
        moment: datetime = self.fetch("SELECT UTC_TIMESTAMP(6)")[0][0]
        return moment

    # ---- waiting

    def until(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Poll until `condition()` is true: other processes and the database send no signal to a test."""
        deadline = monotonic() + seconds
        while not condition():
            assert monotonic() < deadline, f"waited {seconds:g} s in vain until {what}"
            sleep(POLL_SECONDS)

    def until_serving(self) -> None:
        """`/readyz` says 200: database, migrations and protocol are right."""
        self.until(lambda: self.request("GET", "/readyz")[0] == 200, "the web server is ready")

    def until_loops_run(self, since: datetime, *, routers: int = 1, workers: int = 2) -> None:
        """So many resident loops have started since then (by the database's clock)."""
        sql = "SELECT COUNT(*) FROM `_System_ConnectorWorker` WHERE Kind = %s AND StartedAt >= %s"
        wanted = {"router": routers, "worker": workers}
        self.until(
            lambda: all(self.fetch(sql, kind, since)[0][0] >= count for kind, count in wanted.items()),
            f"{wanted} loops have started",
        )

    def until_idle(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Every receipt is routed and every work item is terminal."""
        self.until(lambda: not self.waiting(), "nothing waits any more", seconds)

    def waiting(self) -> dict[str, int]:
        """Receipts that are pending and work items that are not terminal, by state."""
        live = "('pending', 'blocked', 'processing', 'retry')"
        return dict(
            self.fetch(
                "SELECT CONCAT('receipt ', State), COUNT(*) FROM `_System_ConnectorReceipt` WHERE State = 'pending' GROUP BY State "
                f"UNION ALL SELECT State, COUNT(*) FROM `_System_ConnectorWorkItem` WHERE State IN {live} GROUP BY State"
            )
        )

    def table(self, name: str) -> list[tuple[Any, ...]]:
        """Every column of every row of `_System_Connector<name>`, by id."""
        return self.fetch(f"SELECT * FROM `_System_Connector{name}` ORDER BY Id")

    def assert_audit_is_clean(self) -> None:
        report = self.manage("audit")
        assert report["ok"] is True, report
        assert report["violations"] == []


@contextmanager
def service(database_url: str | None = None, **settings: str) -> Iterator[Service]:
    """A migrated and activated installation, nothing started yet. `settings` are HEADRACE_ ones and variables for secrets."""
    with ExitStack() as held:
        folder = held.enter_context(state_folder())
        url = held.enter_context(own_database(database_url or os.environ["HEADRACE_DATABASE_URL"]))
        listener = held.enter_context(closing(listen(Bind("127.0.0.1", 0))))
        keys = {"HEADRACE_SECRET_KEY": uuid.uuid4().hex * 2, "HEADRACE_ENCRYPTION_KEYS": Fernet.generate_key().decode()}
        environment = start_environment(folder, HEADRACE_DATABASE_URL=url, HEADRACE_FORWARD_ALLOWED_NETWORKS="127.0.0.1/32", **keys)
        environment |= {"DJANGO_SETTINGS_MODULE": "ops_ui.settings", **settings}
        schema_copies.prepare(url, lambda: prepare_schema(environment), settings.get("HEADRACE_APPS", ""))
        made = Service(folder, url, environment, listener)
        held.callback(made.stop)
        yield made


def prepare_schema(environment: Mapping[str, str]) -> None:
    """Migrate and activate as the start does, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "ops_ui.start.prepare", SCHEMA_ONLY],
        cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def own_database(url: str) -> Iterator[str]:
    """The URL of a fresh database beside the one that `url` names; dropped at the end."""
    place, mark, query = url.partition("?")
    base, _, name = place.rpartition("/")
    own = f"{name[:50]}_acc_{uuid.uuid4().hex[:8]}"
    settings = database(f"{base}/{own}{mark}{query}")

    def execute(sql: str) -> None:
        with closing(connect(settings)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql)

    execute(f"CREATE DATABASE `{own}` CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    try:
        yield f"{base}/{own}{mark}{query}"
    finally:
        execute(f"DROP DATABASE `{own}`")


def _process_table() -> Iterator[tuple[int, int, str, str]]:
    """(id, process group, state, command line) of every process of this host."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                yield int(entry.name), int(stat[2]), stat[0], command_of(int(entry.name))
