"""The parts that the supervisor runs: child processes, each the head of a process group of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ops_ui.config.environment import CHECKOUT

PR_SET_PDEATHSIG: Final = 1
"""prctl(2): have the kernel send this process a signal when its parent dies."""
PR_SET_CHILD_SUBREAPER: Final = 36
"""prctl(2): become the parent of descendants whose own parent died."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
STEADY_SECONDS: Final = 60.0
"""A part that ran this long had a good start: its next death is its first."""
STRAY_SECONDS: Final = 2.0
"""What the members of a dead part's group get to end by themselves."""

_libc: Final = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """In a new child, before exec: end with SIGTERM when the parent dies, and take signals again (the parent blocks some)."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def adopt_orphans() -> None:
    """Let the workers of a dead part become this process's children, so that it can see them end (and they leave no zombie)."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def pause_seconds(failures: int) -> float:
    """How long to wait before a part that died `failures` times in a row (from 1) is started again."""
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 16))


@dataclass(slots=True)
class Part:
    """One child process. `grace_seconds` is what it gets between SIGTERM and SIGKILL."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    grace_seconds: float
    pass_fds: tuple[int, ...] = ()
    failures: int = 0
    not_before: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _started_at: float = 0.0

    def start(self) -> None:
        self._started_at = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603  # commands are ours
            self.command,
            env=dict(self.environ),
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            pass_fds=self.pass_fds,
            process_group=0,  # Ctrl-C in the terminal reaches the supervisor only, which stops its parts in order
            preexec_fn=die_with_parent,  # noqa: PLW1509  # the supervisor has one thread
        )

    def tend(self) -> str | None:
        """Start the part again once its pause is over; returns a sentence when it has just died."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.not_before:
                self.start()
            return None
        code = self.process.poll()
        if code is None:
            return None
        pid = self.process.pid
        self._end_group(pid)
        self.process = None
        self.failures = 1 if now - self._started_at >= STEADY_SECONDS else self.failures + 1
        pause = pause_seconds(self.failures)
        self.not_before = now + pause
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self.name} (pid {pid}) {how}; restarting it in {pause:g} s"

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def is_gone(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        """End what is left of the part's group, at once."""
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self._end_group(self.process.pid)
            self.process = None

    @staticmethod
    def _end_group(group: int) -> None:
        """The head is gone (and waited for); its workers must not serve beside the next one's."""
        for signum in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + STRAY_SECONDS
            remain = _signal_group(group, signum)
            while remain and time.monotonic() < deadline:
                time.sleep(0.05)
                remain = _signal_group(group, 0)
            if not remain:
                return


def _signal_group(group: int, signum: int) -> bool:
    """Send a signal to a process group; False = it has no member any more, adopted ones that ended included."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            continue
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signum)
        return True
    return False
