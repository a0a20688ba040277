"""The test's side of the nursery: starts processes that run commands, waits for their end, reads what they said."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.orders import At, Order
from tests.support.running import CHECKOUT
from tests.support.web import suite_database_url

PATIENCE_SECONDS = 60.0
Command = Sequence[str]


@dataclass
class Child:
    """A process that runs commands."""

    pid: int
    folder: Path
    ended: Mapping[str, Any]
    """As the nursery says it: `code`, `signal` or `stopped`; empty while it runs."""

    @property
    def was_killed(self) -> bool:
        return self.ended.get("signal") == signal.SIGKILL

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text(encoding="utf-8", errors="replace")

    @property
    def points(self) -> list[str]:
        """What it made durable at each of its commit points, or would have: in order, the one at which it ended included."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "points").read_text(encoding="utf-8").splitlines()
        return []

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The JSON answers of its commands."""
        return [json.loads(line) for line in self.said.splitlines() if line.startswith("{") and not line.startswith('{"timestamp"')]

    def send(self, number: int) -> None:
        os.kill(self.pid, number)


class Nursery:
    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._count = 0
        self._alive: list[Child] = []
        environment = {
            **os.environ,
            "HEADRACE_DATABASE_URL": suite_database_url(),
            "HEADRACE_STATE_DIR": str(folder),
            "DJANGO_SETTINGS_MODULE": "ops_ui.settings",
            "PYTHONPATH": str(CHECKOUT),
            **settings,
        }
        with (folder / "nursery").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.nursery"],
                cwd=CHECKOUT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip

    def start(
        self,
        *commands: Command,
        at: At | None = None,
        settings: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> Child:
        """A process that runs the commands, each with `--json`, one after the other."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        order = Order([[*command, "--json"] for command in commands], str(folder), at, settings or {}, constants or {})
        child = Child(self._ask({"start": order.to_json()}, None)["pid"], folder, {})
        self._alive.append(child)
        return child

    def wait(self, child: Child) -> Child:
        """Until it has ended or stands still."""
        child.ended = self._ask({"wait": child.pid}, child)
        if "stopped" not in child.ended:
            self._alive.remove(child)
        return child

    def run(self, *commands: Command, **options: Any) -> Child:
        """As `start`, and waits for the end, whatever it is."""
        return self.wait(self.start(*commands, **options))

    def succeed(self, *commands: Command, **options: Any) -> Child:
        """As `run`; every command has to end with exit code 0."""
        child = self.run(*commands, **options)
        assert child.ended == {"code": 0}, f"{commands}: {child.ended}\n{child.said}"
        return child

    def end_all(self) -> None:
        """Kill what a test has left."""
        for child in list(self._alive):
            with contextlib.suppress(ProcessLookupError):
                child.send(signal.SIGKILL)
            self.wait(child)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()

    def _ask(self, request: dict[str, Any], about: Child | None) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], PATIENCE_SECONDS)[0] and about is not None:
            about.send(signal.SIGKILL)
            self._process.stdout.readline()
            self._alive.remove(about)
            raise AssertionError(f"it did not end:\n{about.said}")
        line = self._process.stdout.readline()
        assert line, (self._folder / "nursery").read_text(encoding="utf-8")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def nursery_in(folder: Path, **settings: str) -> Iterator[Nursery]:
    made = Nursery(folder, **settings)
    try:
        yield made
    finally:
        made.close()
