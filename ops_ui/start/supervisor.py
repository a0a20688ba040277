"""The supervisor of `script/server`: database, preparation, web and cluster, in this order; and back again at the end."""

from __future__ import annotations

import http.client
import shutil
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from ops_ui.config.environment import WAKE, Bind, socket_folder
from ops_ui.start import CannotStart
from ops_ui.start.installation import Installation
from ops_ui.start.locks import FileLock
from ops_ui.start.parts import Part, adopt_orphans, pause_seconds
from ops_ui.start.private_database import Use
from ops_ui.start.running_settings import SERVER_LOCK, kept

TICK_SECONDS: Final = 1.0
WEB_GRACE_SECONDS: Final = 25.0
"""A little more than gunicorn's own graceful time-out (`gunicorn_conf.py`)."""
CLUSTER_GRACE_SECONDS: Final = 30.0
"""Flows that run longer are cut off; their leases expire and they are attempted again."""
DATABASE_GRACE_SECONDS: Final = 60.0
BACKLOG: Final = 1024


class Stopped(Exception):
    """A signal asked the supervisor to stop."""


def serve(installation: Installation) -> int:
    """Run everything until a signal; returns the exit code. Raises CannotStart before anything serves."""
    supervisor = Supervisor(installation)
    with ExitStack() as held:
        lock = held.enter_context(FileLock(installation.state_dir / SERVER_LOCK))
        if not lock.acquire():
            raise CannotStart(
                f"Headrace is already running from {installation.state_dir}; stop it, or set HEADRACE_STATE_DIR to another folder."
            )
        listener = held.enter_context(listen(installation.bind))
        held.enter_context(kept(installation.state_dir, supervisor.take(listener)))
        signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.signals)
        adopt_orphans()
        return supervisor.run(listener)


def listen(bind: Bind) -> socket.socket:
    """The bound socket that gunicorn serves on.

    The supervisor holds it, so that deliveries wait in its queue, instead of being refused, while a dead web server is replaced.
    """
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((bind.host, bind.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotStart(
            f"Cannot listen on {bind} ({error.strerror or error}); "
            "stop what uses that address, or set HEADRACE_BIND to another, such as 127.0.0.1:8001."
        ) from None
    return listener


class Supervisor:
    """Runs the parts of one installation."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._environ = {name: value for name, value in installation.environ.items() if name != "HEADRACE_BIND_FILE"}
        self._database: Use | None = None
        self._database_failures = 0
        self._database_not_before = 0.0
        self._parts: list[Part] = []
        self.signals = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
        # Under nohup the end of the terminal is meant to be survived.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            self.signals.add(signal.SIGHUP)

    def take(self, listener: socket.socket) -> dict[str, str]:
        """The environment of every part, now that port 0 has become a real one."""
        self._environ["HEADRACE_BIND"] = str(Bind(*listener.getsockname()[:2]))
        return self._environ

    def run(self, listener: socket.socket) -> int:
        """Start, watch, stop. Exit code 0 after a signal, the preparation's own code when that failed."""
        try:
            self._start_database()
            code = self._prepare()
            if code:
                return code
            self._start_parts(listener)
            self._announce(listener)
            while True:
                self._wait(TICK_SECONDS)
                self._tend()
        except Stopped:
            return 0
        finally:
            listener.close()
            self._stop()

    def _wait(self, seconds: float) -> None:
        """Sleep until a child ends or the time is over. Raises Stopped on a signal to stop."""
        arrived = signal.sigtimedwait(self.signals, seconds)
        if arrived is not None and arrived.si_signo != signal.SIGCHLD:
            raise Stopped

    def _start_database(self) -> None:
        if self._installation.private is None:
            return
        if not self._installation.private.is_installed():
            say(f"creating a private MariaDB in {self._installation.private.folder} …")
        self._database = Use(self._installation.private, lambda: self._wait(0.0))
        self._database.__enter__()

    def _prepare(self) -> int:
        say("preparing the database …")
        part = Part("preparation", [sys.executable, "-m", "ops_ui.start.prepare"], self._environ, 10.0)
        self._parts = [part]
        part.start()
        while not part.is_gone():
            self._wait(TICK_SECONDS)
        self._parts = []
        process = part.process
        assert process is not None  # noqa: S101  # started above
        return abs(int(process.returncode))

    def _start_parts(self, listener: socket.socket) -> None:
        gunicorn = [
            sys.executable,
            "-m",
            "gunicorn",
            "--config",
            "python:ops_ui.gunicorn_conf",
            "--bind",
            f"fd://{listener.fileno()}",
        ]
        environ = {**self._environ, "PROMETHEUS_MULTIPROC_DIR": str(self._empty_metrics_folder())}
        self._parts = [
            Part("web", [*gunicorn, "ops_ui.wsgi:application"], environ, WEB_GRACE_SECONDS, (listener.fileno(),)),
            Part("cluster", [sys.executable, "manage.py", "qcluster"], environ, CLUSTER_GRACE_SECONDS),
        ]
        for part in self._parts:
            part.start()

    def _empty_metrics_folder(self) -> Path:
        """Where the processes share their counters; those of an earlier start would be added to the new ones."""
        folder = self._installation.state_dir / "metrics"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    def _announce(self, listener: socket.socket) -> None:
        address = listener.getsockname()
        while not answers(address):
            self._wait(0.1)
            self._tend()
        url = f"http://{_host_to_call(address[0])}:{address[1]}"
        say(f"console: {self._installation.public_url or url}/admin/")
        say(f"ingress: {self._installation.public_url or url}/ingress/<namespace>/<endpoint>   stop with Ctrl-C")

    def _tend(self) -> None:
        self._tend_database()
        for part in self._parts:
            news = part.tend()
            if news:
                say(news)

    def _tend_database(self) -> None:
        if self._database is None or self._database.is_running() or time.monotonic() < self._database_not_before:
            return
        say("database exited; restarting it")
        try:
            self._database.ensure_running()
        except CannotStart as error:
            self._database_failures += 1
            pause = pause_seconds(self._database_failures)
            self._database_not_before = time.monotonic() + pause
            say(f"{error} Retrying in {pause:g} s")
        else:
            self._database_failures = 0

    def _stop(self) -> None:
        """Web, cluster, database: each ends before what it stands on does."""
        for part in self._parts:
            if not part.is_gone():
                say(f"stopping {part.name} …")
            part.ask_to_stop()
            self._await_end(part)
            part.kill()
        if self._database is not None:
            say("stopping database …")
            if not self._database.leave(DATABASE_GRACE_SECONDS):
                say("the database keeps running for another Headrace process that uses it")
        self._remove_socket_folder()
        say("stopped")

    def _remove_socket_folder(self) -> None:
        """The short one under /tmp of an installation with a long path, unless the database still has its socket there."""
        folder = socket_folder(self._installation.state_dir)
        if folder != self._installation.state_dir:
            shutil.rmtree(folder / WAKE, ignore_errors=True)
            with suppress(OSError):
                folder.rmdir()

    def _await_end(self, part: Part) -> None:
        """Until the part is gone, its grace is over, or a second signal says that nobody wants to wait."""
        deadline = time.monotonic() + part.grace_seconds
        while not part.is_gone() and time.monotonic() < deadline:
            try:
                self._wait(0.2)
            except Stopped:
                return


def answers(address: tuple[str, int]) -> bool:
    """Whether the web server answers a request at all, whatever it says."""
    connection = http.client.HTTPConnection(_host_to_call(address[0]).strip("[]"), address[1], timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        connection.getresponse()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def _host_to_call(host: str) -> str:
    """A host under which a listener on `host` can be called from here, in brackets where it is IPv6."""
    if host in ("0.0.0.0", "::"):  # noqa: S104  # compared, not bound
        return "localhost"
    return f"[{host}]" if ":" in host else host


def say(line: str) -> None:
    sys.stdout.write(f"headrace: {line}\n")
    sys.stdout.flush()
