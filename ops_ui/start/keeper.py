"""The keeper: runs the private MariaDB as long as any process uses it.

It ends when the last user has gone (after a clean shutdown of the server), when it is told to by SIGTERM, or when the server died
(exit code 1; a user that is left starts another keeper). If the keeper itself is killed, the kernel tells the server to stop.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from ops_ui.start.locks import FileLock
from ops_ui.start.parts import die_with_parent
from ops_ui.start.private_database import PrivateDatabase

SIGNALS: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
USERS_POLL_SECONDS: Final = 0.3
SHUTDOWN_SECONDS: Final = 55.0
LEFTOVER_SECONDS: Final = 60.0


def keep(database: PrivateDatabase) -> int:
    """Run the database until nobody uses it; returns the exit code. Does nothing when another keeper is at work."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    with FileLock(database.keeper_lock) as lock, FileLock(database.users_lock) as users:
        if not lock.acquire():
            return 0
        database.socket.unlink(missing_ok=True)
        end_leftover(database)
        database.temporary.mkdir(exist_ok=True, mode=0o700)
        install(database)
        server = subprocess.Popen(  # noqa: S603  # the command is ours
            database.command(_program("mariadbd")),
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # one thread only, and nothing else delivers the kernel's promise
        )
        return _watch(server, users)


def install(database: PrivateDatabase) -> None:
    """Make the data folder unless there is one; an interrupted attempt leaves none behind that would be taken for whole."""
    if database.is_installed():
        return
    draft = database.folder / "data.new"
    shutil.rmtree(draft, ignore_errors=True)
    subprocess.run(  # noqa: S603  # the command is ours
        [
            _program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir=./{draft.name}",  # the program is a shell script that a space in a path divides
            f"--user={database.user}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={database.user}",
            "--skip-test-db",
            "--skip-name-resolve",
        ],
        check=True,
        cwd=database.folder,
        env={**os.environ, "TMPDIR": str(database.temporary)},  # as the server itself
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=die_with_parent,  # as above
    )
    draft.rename(database.data)


def end_leftover(database: PrivateDatabase) -> None:
    """Wait for the end of a server that lost its keeper and still holds the data (its pid file may as well be stale)."""
    try:
        pid = int(database.pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while _serves(pid, database) and time.monotonic() < deadline:
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.2)
    database.pid_file.unlink(missing_ok=True)


def _serves(pid: int, database: PrivateDatabase) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(f"--datadir={database.data}") in arguments


def _watch(server: subprocess.Popen[bytes], users: FileLock) -> int:
    while server.poll() is None:
        arrived = signal.sigtimedwait(SIGNALS, USERS_POLL_SECONDS)
        told = arrived is not None and arrived.si_signo != signal.SIGCHLD
        if told or users.acquire():
            _stop(server)
            return 0
    return 1


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(SHUTDOWN_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _program(name: str) -> str:
    """Path of a program of Debian's mariadb-server-core; /usr/sbin is not on every user's PATH."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"]))
    if found is None:
        raise SystemExit(f"{name} is not installed; run script/bootstrap")
    return found


if __name__ == "__main__":
    folder, socket_folder, user, kind = sys.argv[1:]
    sys.exit(keep(PrivateDatabase(Path(folder), Path(socket_folder), user, durable=kind == "durable")))
