"""The supervisor with everything it starts, on a private database: start, second start, deaths, stop."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running import RunningServer, children_of, kill, processes_of, start_once, state_folder, wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def state_dir() -> Iterator[Path]:
    """One installation for the whole module: each test finds what the one before left, as a user does."""
    with state_folder() as folder:
        yield folder


class Kept:
    """The installation's server. A test that leaves it running leaves it to the next one: each start takes seconds."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._server: RunningServer | None = None

    def running(self) -> RunningServer:
        if self._server is None or self._server.process.poll() is not None:
            self._server = RunningServer(self._state_dir)
            self._server.wait_until_serving()
        return self._server

    def stop(self) -> None:
        if self._server is not None and self._server.process.poll() is None:
            assert self._server.stop() == 0


@pytest.fixture(scope="module")
def kept(state_dir: Path) -> Iterator[Kept]:
    server = Kept(state_dir)
    yield server
    server.stop()


@pytest.fixture
def server(kept: Kept) -> RunningServer:
    return kept.running()


@pytest.fixture
def no_server(kept: Kept) -> None:
    kept.stop()


def start_and_stop(state_dir: Path) -> list[str]:
    """What the start said."""
    running = RunningServer(state_dir)
    running.wait_until_serving()
    assert running.stop() == 0
    return running.said


def test_the_first_start_makes_everything_and_the_second_nothing() -> None:
    with state_folder() as folder:
        said = start_and_stop(folder)
        assert any("creating a private MariaDB" in line for line in said)
        assert any("console user: admin" in line and "password: " in line for line in said)
        secrets = sorted((folder / "secrets").iterdir())
        assert [path.name for path in secrets] == ["encryption_keys", "secret_key"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}
        before = [path.read_bytes() for path in secrets]

        again = start_and_stop(folder)
        assert not any("making" in line or "password" in line for line in again)
        assert [path.read_bytes() for path in secrets] == before


def test_it_serves_and_is_ready(server: RunningServer) -> None:
    assert server.get("/healthz") == 200
    assert server.get("/readyz") == 200


def test_a_second_server_of_one_installation_is_refused(server: RunningServer, state_dir: Path) -> None:
    refused = start_once(state_dir, "server")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"headrace: Headrace is already running from {state_dir}; ")
    assert server.get("/healthz") == 200


def test_manage_works_beside_the_server(server: RunningServer, state_dir: Path) -> None:
    done = start_once(state_dir, "manage", "showmigrations", "projection")
    assert (done.returncode, "[ ]" in done.stdout) == (0, False), done.stderr
    assert server.get("/readyz") == 200


def test_manage_beside_the_server_does_nothing_with_another_database(server: RunningServer, state_dir: Path) -> None:
    refused = start_once(state_dir, "manage", "dlq", "list", HEADRACE_DATABASE_URL="mysql://root@127.0.0.1:1/other")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("headrace: HEADRACE_DATABASE_URL is not what the running server was started with")


@pytest.mark.parametrize(("part", "command"), [("web", "gunicorn"), ("cluster", "qcluster")])
def test_a_part_that_dies_is_started_again(server: RunningServer, part: str, command: str) -> None:
    (head,) = server.children(command)
    group = {head, *children_of(head)}
    os.kill(head, signal.SIGKILL)
    assert "restarting it" in server.wait_for_line(f"{part} (pid {head}) was killed by signal 9")
    wait_until(lambda: server.children(command), f"{part} is back")
    assert set(server.children(command)).isdisjoint(group)
    for pid in group:
        assert not (Path("/proc") / str(pid)).exists(), "a worker of the dead part still serves"


def test_a_request_waits_while_the_web_server_is_replaced(server: RunningServer) -> None:
    (head,) = server.children("gunicorn")
    os.kill(head, signal.SIGKILL)
    server.wait_for_line(f"web (pid {head})")
    assert server.get("/healthz") == 200


def test_the_database_is_started_again(server: RunningServer) -> None:
    (keeper,) = server.children("keeper")
    (database,) = children_of(keeper)
    os.kill(database, signal.SIGKILL)
    server.wait_for_line("database exited; restarting it")
    wait_until(lambda: server.get("/readyz") == 200, "the service is ready again")


def test_ctrl_c_ends_all_of_it(server: RunningServer, state_dir: Path) -> None:
    assert len(processes_of(state_dir)) > 5
    assert server.stop(signal.SIGINT) == 0
    assert processes_of(state_dir) == []


def test_nothing_outlives_a_killed_supervisor_and_the_next_start_works(kept: Kept, state_dir: Path) -> None:
    server = kept.running()
    server.process.kill()
    server.process.wait()
    wait_until(lambda: processes_of(state_dir) == [], "all parts end")
    assert kept.running().get("/readyz") == 200


def test_a_crash_of_the_host_leaves_stale_files_that_stop_nothing(kept: Kept, state_dir: Path) -> None:
    server = kept.running()

    def kill_all() -> bool:
        """Again and again: a part may start a process between our look and our kill."""
        for pid in processes_of(state_dir):
            kill(pid)
        return processes_of(state_dir) == []

    wait_until(kill_all, "all are dead")
    server.process.wait()
    # The pid file now names a process that lives and has nothing to do with it; the socket leads nowhere.
    (state_dir / "database" / "mariadbd.pid").write_text(str(os.getpid()), encoding="ascii")
    (state_dir / "database" / "mariadb.sock").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(state_dir / "database" / "mariadb.sock"))
    assert kept.running().get("/readyz") == 200


def test_sigterm_ends_all_of_it_too(server: RunningServer, state_dir: Path) -> None:
    assert server.stop(signal.SIGTERM) == 0
    assert processes_of(state_dir) == []


@pytest.mark.usefixtures("no_server")
def test_a_signal_during_the_start_is_a_clean_stop(state_dir: Path) -> None:
    running = RunningServer(state_dir)
    running.wait_for_line("preparing the database")
    assert running.stop() == 0
    assert processes_of(state_dir) == []


@pytest.mark.usefixtures("no_server")
def test_manage_works_without_a_server(state_dir: Path) -> None:
    done = start_once(state_dir, "manage", "showmigrations", "projection")
    assert (done.returncode, "[ ]" in done.stdout) == (0, False), done.stderr
    assert "[X] 0001_initial" in done.stdout
    wait_until(lambda: processes_of(state_dir) == [], "the database of the command ends")


def test_manage_fills_a_new_database_before_its_first_command() -> None:
    with state_folder() as folder:
        done = start_once(folder, "manage", "showmigrations", "projection")
        assert done.returncode == 0, done.stderr
        assert "[X] 0001_initial" in done.stdout
        assert "[ ]" not in done.stdout
