"""The product's own processes on the database of a workload: real gunicorn, cluster, router and worker, gone when the block ends.

Each is the head of a process group of its own, writes into a log of its own, and has a state folder (spool, sockets, counters) that
is thrown away. Nothing of the configured installation is touched, and nobody outside is told of alerts.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Final
from urllib.parse import quote, urlsplit

from django.conf import settings

from connectors.bench.workbench import BenchFailed

PATIENCE_SECONDS: Final = 60.0
"""For a start, or an answer, on a busy machine."""
POLL_SECONDS: Final = 0.05
LOG_TAIL_CHARACTERS: Final = 2000
BACKLOG: Final = 1024
NOT_INHERITED: Final = ("DATABASE_URL", "STATE_DIR", "BIND", "ALERT_URL", "ALERT_MAIL")


class Process:
    """One part of the product."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, fds: Sequence[int]) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._popen = subprocess.Popen(  # noqa: S603  # commands are ours
                command,
                cwd=settings.BASE_DIR,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(fds),
                process_group=0,
            )
        self.pid = self._popen.pid

    def require_alive(self) -> None:
        """Raises BenchFailed, with what it said last, when it has ended."""
        code = self._popen.poll()
        if code is not None:
            raise BenchFailed(f"{self.name} ended with exit code {code}: {self.tail()}")

    def tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARACTERS:].strip()

    def cpu_seconds(self) -> float:
        """What the live processes of its group have used so far, in user and kernel mode."""
        ticks = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):  # it has just ended
                    fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                    ticks += int(fields[11]) + int(fields[12]) if int(fields[2]) == self.pid else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """SIGKILL to the group: what it was doing goes with its database."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()


class Site:
    """Processes that share an environment, the database `database_url` and a folder."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.processes: list[Process] = []
        metrics = folder / "metrics"
        metrics.mkdir()
        dropped = {f"HEADRACE_{name}{suffix}" for name in NOT_INHERITED for suffix in ("", "_FILE")}
        self.environment = {name: value for name, value in os.environ.items() if name not in dropped} | {
            "HEADRACE_DATABASE_URL": database_url,
            "HEADRACE_STATE_DIR": str(folder),
            "HEADRACE_FORWARD_ALLOWED_NETWORKS": "127.0.0.1/32",
            "DJANGO_SETTINGS_MODULE": "ops_ui.settings",
            "PROMETHEUS_MULTIPROC_DIR": str(metrics),
        }

    def start(self, name: str, *arguments: str, fds: Sequence[int] = ()) -> Process:
        """`python ARGUMENTS`, in the checkout."""
        log = self.folder / f"{name}-{len(self.processes)}.log"
        process = Process(name, [sys.executable, *arguments], self.environment, log, fds)
        self.processes.append(process)
        return process

    def start_web(self, application: str, listener: socket.socket) -> Process:
        """gunicorn under the product's configuration, on a socket that the caller holds; returns once it answers requests."""
        fd = listener.fileno()
        gunicorn = ("-m", "gunicorn", "--config", "python:ops_ui.gunicorn_conf", "--bind", f"fd://{fd}", application)
        process = self.start("web", *gunicorn, fds=[fd])
        self.until(lambda: _answers(listener.getsockname()[1]), "the web server answers")
        return process

    def until(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Poll until `condition()` is true: other processes send no signal. Raises BenchFailed when one of them ended, or in the end."""
        deadline, pause = monotonic() + seconds, threading.Event()
        while not condition():
            for process in self.processes:
                process.require_alive()
            if monotonic() >= deadline:
                tails = "; ".join(f"{process.name} said: {process.tail()}" for process in self.processes)
                raise BenchFailed(f"timed out after {seconds:g} s waiting until {what}; {tails}")
            pause.wait(POLL_SECONDS)

    def close(self) -> None:
        for process in self.processes:
            process.kill()


@contextmanager
def site(database_url: str) -> Iterator[Site]:
    """A site with nothing started yet; all that was is killed at the end, also when this process is asked to end (SIGTERM)."""
    with ExitStack() as held:
        held.enter_context(_ending_on_sigterm())
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="hr-bench-", ignore_cleanup_errors=True))
        made = Site(Path(folder), database_url)
        held.callback(made.close)
        yield made


@contextmanager
def listening() -> Iterator[socket.socket]:
    """A socket that listens on a free port of loopback."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)) as listener:
        yield listener


def database_url(name: str) -> str:
    """HEADRACE_DATABASE_URL with another database name."""
    variable = "HEADRACE_DATABASE_URL"
    path = os.environ.get(f"{variable}_FILE")
    raw = (settings.BASE_DIR / Path(path).expanduser()).read_text(encoding="utf-8") if path else os.environ[variable]
    return urlsplit(raw.strip())._replace(path="/" + quote(name, safe="")).geturl()


def _answers(port: int) -> bool:
    """Whether the web server answers a request at all, whatever it says."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        connection.getresponse()
        return True
    return False


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block like Ctrl-C does, so that no process and no database is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
