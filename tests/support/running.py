"""Runs the real start code in processes of its own, in a state folder that is thrown away."""

from __future__ import annotations

import http.client
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from ops_ui.config import environment

CHECKOUT = environment.CHECKOUT
PATIENCE_SECONDS = 90.0


def start_environment(state_dir: Path, **settings: str) -> dict[str, str]:
    """The environment of a user who sets nothing but these; HEADRACE_BIND is a free port."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEADRACE_", "COV_", "PYTEST_", "DJANGO_"))}
    return {**kept, "HEADRACE_STATE_DIR": str(state_dir), "HEADRACE_BIND": "127.0.0.1:0", "PYTHONPATH": str(CHECKOUT), **settings}


def start_once(state_dir: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """`python -m ops_ui.start ARGUMENTS` until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "ops_ui.start", *arguments],
        env=start_environment(state_dir, **settings),
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


class RunningServer:
    """A supervisor; `said` is what it printed so far."""

    def __init__(self, state_dir: Path, **settings: str) -> None:
        self.state_dir = state_dir
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        with (state_dir / "stderr").open("wb") as errors:
            self.process = self._start(settings, errors)
        threading.Thread(target=self._read, daemon=True).start()

    def _start(self, settings: dict[str, str], errors: IO[bytes]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ops_ui.start", "server"],
            env=start_environment(self.state_dir, **settings),
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self.process.stdout.close()
        self._lines.put(None)

    def wait_for_line(self, part: str) -> str:
        """The next line that contains `part`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            line = self._lines.get(timeout=max(0.1, deadline - time.monotonic()))
            if line is None:
                errors = (self.state_dir / "stderr").read_text(encoding="utf-8", errors="replace")
                raise AssertionError(f"ended before it said {part!r}: {self.said}\n{errors[-4000:]}")
            self.said.append(line)
            if part in line:
                return line

    def wait_until_serving(self) -> str:
        """The address of the console without its path, once it answers."""
        self.url = urlsplit(self.wait_for_line("console: http").split("console: ")[1])._replace(path="").geturl()
        return self.url

    def get(self, path: str) -> int:
        """The status of one GET; the connection waits in the server's queue while nobody answers."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(parts.hostname), int(parts.port or 80), timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def children(self, part: str) -> list[int]:
        """Child processes of the supervisor whose command line contains `part`."""
        return [pid for pid in children_of(self.process.pid) if part in command_of(pid)]

    def stop(self, signum: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(signum)
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def state_folder() -> Iterator[Path]:
    """A folder with a short path (sockets), removed at the end together with every process that still belongs to it."""
    folder = Path(tempfile.mkdtemp(prefix="hr-"))
    try:
        yield folder
    finally:
        for pid in processes_of(folder):
            kill(pid)
        wait_until(lambda: not processes_of(folder), "the processes of a test end")
        shutil.rmtree(folder, ignore_errors=True)


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def processes_of(state_dir: Path) -> list[int]:
    """Every live process whose environment or command line names this state folder."""
    wanted = os.fsencode(state_dir)
    return [pid for pid in _pids() if pid != os.getpid() and any(wanted in _proc(pid, name) for name in ("environ", "cmdline"))]


def children_of(parent: int) -> list[int]:
    return [pid for pid in _pids() if _parent(pid) == parent]


def command_of(pid: int) -> str:
    return _proc(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll a condition of foreign processes, which send no signal."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.05)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _proc(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    fields = _proc(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0
