"""What a start looks at before it installs anything, and what a stop leaves behind."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops_ui.config.environment import WAKE, Bind, socket_folder
from ops_ui.start.installation import Installation
from ops_ui.start.supervisor import Supervisor
from tests.support.running import CHECKOUT


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def look(folder: Path, bind: str) -> subprocess.CompletedProcess[str]:
    """As script/server does in a checkout without an environment."""
    script = f". '{CHECKOUT}/script/lib/setup.sh'; set -euo pipefail; refuse_taken_port; echo free"
    environment = {"HEADRACE_BIND": bind, "PATH": "/usr/bin:/bin"}
    return subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("bind", ["127.0.0.1:{}", "{}", "0.0.0.0:{}"])
def test_a_port_that_is_taken_is_told_before_the_installation(tmp_path: Path, taken: int, bind: str) -> None:
    done = look(tmp_path, bind.format(taken))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"headrace: Cannot listen on {bind.format(taken)} (Address already in use); stop what uses")


@pytest.mark.parametrize("bind", ["127.0.0.1:1", "0", "nonsense", "[::1"])
def test_what_is_free_or_unreadable_is_left_to_the_start(tmp_path: Path, bind: str) -> None:
    assert look(tmp_path, bind).stdout == "free\n"


def test_an_installed_checkout_looks_later(tmp_path: Path, taken: int) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    assert look(tmp_path, f"127.0.0.1:{taken}").stdout == "free\n"


def test_a_stop_removes_the_folder_of_sockets_outside_the_state_folder(tmp_path: Path) -> None:
    state = tmp_path / ("x" * 100)
    folder = socket_folder(state)
    (folder / WAKE).mkdir(parents=True)
    (folder / WAKE / "claim.1").touch()
    Supervisor(Installation(state, Bind("127.0.0.1", 0), "", {}, None))._stop()
    assert not folder.exists()


def test_a_stop_leaves_the_socket_of_a_database_that_goes_on(tmp_path: Path) -> None:
    state = tmp_path / ("y" * 100)
    folder = socket_folder(state)
    folder.mkdir()
    (folder / "mariadb.sock").touch()
    try:
        Supervisor(Installation(state, Bind("127.0.0.1", 0), "", {}, None))._stop()
        assert (folder / "mariadb.sock").exists()
    finally:
        (folder / "mariadb.sock").unlink()
        folder.rmdir()
