"""The private MariaDB of an installation: where it lives, how it is run, and how a process uses it.

A process that needs the database holds a shared lock on `users.lock` while it does (`Use`). The first one starts a keeper
(`keeper.py`), which runs mariadbd and stops it once nobody holds that lock any more: the database outlives no user, and no user's
end takes it away from another.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import MySQLdb

from ops_ui.config.environment import CHECKOUT
from ops_ui.start import CannotStart
from ops_ui.start.locks import FileLock, is_held

MEBIBYTE: Final = 1024**2
SMALLEST_POOL_BYTES: Final = 128 * MEBIBYTE
LARGEST_POOL_BYTES: Final = 1024 * MEBIBYTE
STOP_SECONDS: Final = 60.0
"""How long a database that is shutting down may take before its next user gives up."""
POLL_SECONDS: Final = 0.1
LOG_TAIL_LINES: Final = 3
LARGEST_LOG_BYTES: Final = 5 * MEBIBYTE

SERVER_GONE: Final = {2002, 2003, 2006, 2013, 1053, 1927}
"""No socket, connection lost, shutting down."""


@dataclass(frozen=True, slots=True)
class PrivateDatabase:
    """Data in `folder`, socket in `socket_folder`, owned and entered by the operating system user `user`, without a password."""

    folder: Path
    socket_folder: Path
    user: str
    durable: bool = True

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def socket(self) -> Path:
        return self.socket_folder / "mariadb.sock"

    @property
    def log(self) -> Path:
        """What the server and its keeper say."""
        return self.folder / "mariadbd.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / "mariadbd.pid"

    @property
    def temporary(self) -> Path:
        """Temporary tables. A folder of its own: a server that starts deletes those of every other server in the folder it is given."""
        return self.folder / "tmp"

    @property
    def users_lock(self) -> Path:
        return self.folder / "users.lock"

    @property
    def keeper_lock(self) -> Path:
        return self.folder / "keeper.lock"

    def is_installed(self) -> bool:
        return self.data.is_dir()

    def command(self, program: str) -> list[str]:
        """How mariadbd is run. `--no-defaults`: the host's own configuration is another server's."""
        return [
            program,
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--pid-file={self.pid_file}",
            f"--tmpdir={self.temporary}",
            f"--user={self.user}",
            "--skip-networking",
            "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_general_ci",
            "--transaction-isolation=READ-COMMITTED",
            "--default-time-zone=+00:00",
            # The largest accepted body is 25 MiB, and escaping may double it.
            "--max-allowed-packet=64M",
            "--max-connections=200",
            f"--innodb-buffer-pool-size={pool_bytes(self.durable)}",
            "--innodb-log-file-size=256M" if self.durable else "--innodb-log-file-size=64M",
            # 1: a commit is on the disk before it is answered. A database that is thrown away need not survive a power cut.
            f"--innodb-flush-log-at-trx-commit={1 if self.durable else 2}",
            "--innodb-doublewrite=1" if self.durable else "--innodb-doublewrite=0",
            # Tests count the rows that plans read: there statistics are exact, and new only when a test asks for them.
            *([] if self.durable else ["--innodb-stats-auto-recalc=0", "--innodb-stats-persistent-sample-pages=1000"]),
        ]

    def answers(self) -> bool:
        """Whether the server takes connections. Raises CannotStart when it takes ours for somebody else's."""
        try:
            MySQLdb.connect(unix_socket=str(self.socket), user=self.user, connect_timeout=5).close()
        except MySQLdb.OperationalError as error:
            if error.args[0] in SERVER_GONE:
                return False
            raise CannotStart(
                f"The private database in {self.folder} refuses user {self.user!r} ({error.args[1]}); "
                "run as the user who created it, or set HEADRACE_STATE_DIR to another folder."
            ) from None
        return True

    def is_kept(self) -> bool:
        """Whether a keeper looks after it (it may still be starting, or stopping)."""
        return is_held(self.keeper_lock)

    def last_words(self) -> str:
        """The end of the server's log, on one line."""
        if not self.log.exists():
            return "(no log)"
        lines = [line.strip() for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if "[ERROR]" in line] or lines
        return " / ".join(telling[-LOG_TAIL_LINES:])


def pool_bytes(durable: bool) -> int:
    """An eighth of the memory within bounds: enough to hold the live rows, little enough for a laptop."""
    if not durable:
        return SMALLEST_POOL_BYTES
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(SMALLEST_POOL_BYTES, min(LARGEST_POOL_BYTES, memory // 8))


class Use:
    """A running private database for as long as the context lasts.

    `check()` is called while waiting and may raise to give up (a signal came).
    """

    def __init__(self, database: PrivateDatabase, check: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._check = check
        self._keeper: subprocess.Popen[bytes] | None = None
        for folder in (database.folder, database.socket_folder):
            _private_folder(folder)
        self._lock = FileLock(database.users_lock)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + STOP_SECONDS
        # In the way is only a keeper that is stopping the database: it lets go when that is done.
        while not self._lock.acquire(shared=True):
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"The private database in {self._database.folder} has been stopping for {STOP_SECONDS:.0f} s; "
                    f"see {self._database.log} and stop the process of {self._database.pid_file}."
                )
            self._pause()
        self.ensure_running()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.close()

    def hand_over(self) -> None:
        """Stay a user of the database in the program that this process becomes by exec."""
        self._lock.keep_across_exec()

    def ensure_running(self) -> None:
        """Return once the database answers; start a keeper unless there is one. Raises CannotStart when that fails."""
        if not self.is_running():
            self._keeper = None  # one that ended earlier says nothing about the next
        # In this order: a keeper first cuts off a server that was left over, then starts its own.
        while not (self._database.is_kept() and self._database.answers()):
            if not self.is_running():
                if self._keeper is not None and self._keeper.returncode:
                    raise CannotStart(
                        f"The private database in {self._database.folder} failed to start "
                        f"({self._database.last_words()}); see {self._database.log}."
                    )
                self._keeper = start_keeper(self._database)
            self._pause()

    def is_running(self) -> bool:
        """Whether the database has a keeper; without one it has ended, or is about to."""
        return (self._keeper is not None and self._keeper.poll() is None) or self._database.is_kept()

    def leave(self, seconds: float) -> bool:
        """End the use and wait until the database has stopped; False = it goes on for another user (or takes longer)."""
        self._lock.close()
        deadline = time.monotonic() + seconds
        with FileLock(self._database.users_lock) as lock:
            while self.is_running() and time.monotonic() < deadline:
                if not lock.acquire() and lock.acquire(shared=True):
                    return False
                lock.release()
                time.sleep(POLL_SECONDS)
        return not self.is_running()

    def _pause(self) -> None:
        self._check()
        time.sleep(POLL_SECONDS)


def start_keeper(database: PrivateDatabase) -> subprocess.Popen[bytes]:
    """A keeper in a session of its own, so that Ctrl-C in a terminal does not reach it."""
    kind = "durable" if database.durable else "throwaway"
    command = [sys.executable, "-m", "ops_ui.start.keeper", str(database.folder), str(database.socket_folder), database.user, kind]
    if database.log.exists() and database.log.stat().st_size > LARGEST_LOG_BYTES:
        database.log.replace(database.log.with_suffix(".log.old"))
    with database.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603  # our own module
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=CHECKOUT
        )


def _private_folder(path: Path) -> None:
    """Make `path` for this user alone. Raises CannotStart when somebody else owns it (it may lie in /tmp)."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True, mode=0o700)
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CannotStart(
            f"{path} is not a folder that only this user may write to; remove it, or set HEADRACE_STATE_DIR to another folder."
        )
