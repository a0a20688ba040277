"""Bad configuration stops the start: exit code 2, one sentence with the cause and the way out, no traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings as project
from django.db import connection

from tests.support.running import CHECKOUT, processes_of, start_environment, start_once, state_folder

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(120)]


@pytest.fixture
def state_dir() -> Iterator[Path]:
    with state_folder() as folder:
        yield folder


def assert_refused(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("headrace: ")
    assert lines[0].endswith((".", ")"))
    for part in parts:
        assert part in lines[0]


def url_of_suite(**changes: str) -> str:
    """The URL of the server that the suite runs on, with changes."""
    entry = {**project.DATABASES["default"], "NAME": "headrace_refused", **changes}
    login = f"{quote(entry['USER'])}:{quote(entry['PASSWORD'])}"
    if entry["HOST"].startswith("/"):
        return f"mysql://{login}@localhost/{entry['NAME']}?socket={quote(entry['HOST'])}"
    return f"mysql://{login}@{entry['HOST']}:{entry['PORT']}/{entry['NAME']}"


@pytest.mark.parametrize("command", [("server",), ("manage", "check")])
@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"HEADRACE_LEASE_SECOND": "60"}, ("HEADRACE_LEASE_SECOND is not a Headrace setting", "HEADRACE_LEASE_SECONDS")),
        ({"HEADRACE_LEASE_SECONDS": "soon"}, ("HEADRACE_LEASE_SECONDS is malformed", "whole number")),
        ({"HEADRACE_DATABASE_URL": "sqlite:///headrace.sqlite3"}, ("'sqlite'", "MariaDB, MySQL and TiDB only", "use mysql://")),
        ({"HEADRACE_ENCRYPTION_KEYS": "nonsense"}, ("HEADRACE_ENCRYPTION_KEYS is malformed", "Fernet key")),
        ({"HEADRACE_SECRET_KEY_FILE": "/no/such/file"}, ("HEADRACE_SECRET_KEY_FILE names a file that cannot be read",)),
        ({"HEADRACE_APPS": "no_such_package"}, ("HEADRACE_APPS is malformed", "no_such_package", "install the package")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_bad_setting(state_dir: Path, command: tuple[str, ...], settings: dict[str, str], parts: tuple[str, ...]) -> None:
    assert_refused(start_once(state_dir, *command, **settings), *parts)
    assert processes_of(state_dir) == []


@pytest.mark.parametrize("command", [("server",), ("manage", "check")])
def test_a_state_folder_that_cannot_be_written(state_dir: Path, command: tuple[str, ...]) -> None:
    (state_dir / "file").write_text("", encoding="ascii")
    done = start_once(state_dir / "file" / "state", *command)
    assert_refused(done, f"The state folder {state_dir}/file/state cannot be written to", "set HEADRACE_STATE_DIR")


def test_a_port_that_is_taken(state_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        done = start_once(state_dir, "server", HEADRACE_BIND=bind)
    assert_refused(done, f"Cannot listen on {bind}", "set HEADRACE_BIND")
    assert not (state_dir / "database").exists(), "the database was started before the port was known to be free"


@pytest.mark.parametrize("command", [("server",), ("manage", "check")])
def test_a_wrong_user_or_password(state_dir: Path, command: tuple[str, ...]) -> None:
    url = url_of_suite(USER="nobody_here", PASSWORD="hunter2")
    done = start_once(state_dir, *command, HEADRACE_DATABASE_URL=url)
    assert_refused(done, "refuses user 'nobody_here'", "correct the user or password in HEADRACE_DATABASE_URL")
    assert "hunter2" not in done.stderr + done.stdout


def test_a_server_that_does_not_answer(state_dir: Path) -> None:
    done = start_once(state_dir, "server", HEADRACE_DATABASE_URL=f"mysql://root@localhost/headrace?socket={state_dir}/none.sock")
    assert_refused(
        done, f"The database server at {state_dir}/none.sock does not answer", "start it, or correct HEADRACE_DATABASE_URL"
    )


@pytest.mark.usefixtures("database")
def test_a_database_in_another_character_set(state_dir: Path) -> None:
    name = "headrace_in_latin1"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
        try:
            done = start_once(state_dir, "server", HEADRACE_DATABASE_URL=url_of_suite(NAME=name))
            cursor.execute(f"SHOW TABLES IN {name}")
            assert cursor.fetchall() == ()
        finally:
            cursor.execute(f"DROP DATABASE {name}")
    assert_refused(done, f"The character set of database '{name}' is latin1", f"Run: ALTER DATABASE `{name}` CHARACTER SET utf8mb4")


def test_a_lost_encryption_key(state_dir: Path) -> None:
    (state_dir / "database" / "data").mkdir(parents=True)
    done = start_once(state_dir, "server")
    assert_refused(done, f"{state_dir}/secrets/encryption_keys is missing", "put the file back from a backup")


def test_a_lease_shorter_than_a_flow(state_dir: Path) -> None:
    done = start_once(state_dir, "server", HEADRACE_DATABASE_URL=url_of_suite(), HEADRACE_LEASE_SECONDS="2")
    assert_refused(done, "HEADRACE_LEASE_SECONDS is 2, shorter than", "Set it to", "(headrace.E004)")


@pytest.mark.parametrize("missing", ["DATABASE_URL", "SECRET_KEY", "ENCRYPTION_KEYS"])
def test_manage_py_by_itself_names_a_missing_setting(state_dir: Path, missing: str) -> None:
    complete = {name: os.environ[name] for name in os.environ if name.startswith("HEADRACE_")}
    settings = {name: value for name, value in complete.items() if not name.startswith(f"HEADRACE_{missing}")}
    done = subprocess.run(
        [sys.executable, "manage.py", "work", "list"],
        env=start_environment(state_dir, **{**settings, "HEADRACE_STATE_DIR": str(state_dir)}),
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert_refused(done, f"HEADRACE_{missing} is not set", "script/server")
