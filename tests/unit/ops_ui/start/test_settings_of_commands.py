"""Settings come from a file too, and a command beside a running server has the server's, or does nothing."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops_ui.config.environment import BadSetting
from ops_ui.start import CannotStart, running_settings, settings_file
from ops_ui.start.locks import FileLock
from ops_ui.start.running_settings import adopted
from ops_ui.start.settings_file import with_file

URL = "mysql://her:secret@db.example.com/headrace"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A running server's environment."""
    environ = {"HEADRACE_STATE_DIR": str(tmp_path), "HEADRACE_DATABASE_URL": URL, "HEADRACE_BIND": "127.0.0.1:43210", "HOME": "/x"}
    with FileLock(tmp_path / running_settings.SERVER_LOCK) as lock:
        assert lock.acquire()
        with running_settings.kept(tmp_path, environ):
            yield environ


def test_a_command_in_another_terminal_has_the_servers_settings(server: dict[str, str], tmp_path: Path) -> None:
    made = adopted({"HEADRACE_STATE_DIR": str(tmp_path), "HEADRACE_DATABASE_URL": "", "HOME": "/home/her"})
    assert made == server | {"HOME": "/home/her"}
    assert stat.S_IMODE((tmp_path / running_settings.FILE).stat().st_mode) == 0o600
    assert "HOME" not in (tmp_path / running_settings.FILE).read_text()


@pytest.mark.parametrize(
    ("name", "value"),
    [("DATABASE_URL", "mysql://root@localhost/other"), ("RETENTION_DAYS", "7"), ("WORKER_BATCH", "7")],
)
def test_a_command_with_other_settings_than_the_server_is_refused(
    server: dict[str, str], tmp_path: Path, name: str, value: str
) -> None:
    with pytest.raises(CannotStart, match=f"HEADRACE_{name} is not what the running server was started with"):
        adopted({"HEADRACE_STATE_DIR": str(tmp_path), f"HEADRACE_{name}": value})


@pytest.mark.parametrize("bind", [{"HEADRACE_BIND": "127.0.0.1:0"}, {"HEADRACE_BIND_FILE": "/run/bind"}])
def test_the_port_and_the_folder_are_the_servers(server: dict[str, str], tmp_path: Path, bind: dict[str, str]) -> None:
    if "HEADRACE_BIND_FILE" in bind:
        bind = {"HEADRACE_BIND_FILE": str(tmp_path / "bind")}
        (tmp_path / "bind").write_text("127.0.0.1:0")
    given = {"HEADRACE_STATE_DIR": f"{tmp_path}/", "HEADRACE_DATABASE_URL": URL, **bind}
    assert adopted(given) | {"HOME": "/x"} == server


def test_paths_of_packages_are_the_servers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["/first"])
    with FileLock(tmp_path / running_settings.SERVER_LOCK) as lock:
        assert lock.acquire()
        with running_settings.kept(tmp_path, {"PYTHONPATH": "/srv/apps", "HEADRACE_APPS": "json"}):
            made = adopted({"HEADRACE_STATE_DIR": str(tmp_path), "PYTHONPATH": "/checkout"})
    assert (made["PYTHONPATH"], made["HEADRACE_APPS"]) == ("/checkout:/srv/apps", "json")


def test_without_a_running_server_nothing_is_taken_over(server: dict[str, str], tmp_path: Path) -> None:
    left_behind = tmp_path / "killed"
    left_behind.mkdir()
    (left_behind / running_settings.FILE).write_bytes((tmp_path / running_settings.FILE).read_bytes())
    given = {"HEADRACE_STATE_DIR": str(left_behind), "HEADRACE_DATABASE_URL": "mysql://root@localhost/other"}
    assert adopted(given) == given


def test_the_servers_settings_go_with_it(tmp_path: Path) -> None:
    with running_settings.kept(tmp_path, {"HEADRACE_DATABASE_URL": URL}):
        assert (tmp_path / running_settings.FILE).exists()
    assert not (tmp_path / running_settings.FILE).exists()


def test_a_settings_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    path = tmp_path / "own settings.env"
    path.write_bytes(
        b"\xef\xbb\xbf# of the shop\r\nHEADRACE_DATABASE_URL=mysql://u:p#=@h/db\r\n\r\nexport HEADRACE_APPS = 'acme_sync, other'\r\n"
        b'HUBSPOT_SECRET="a b"\r\nHEADRACE_BIND=0.0.0.0:80\r\n'
    )
    made = with_file({"HEADRACE_ENV_FILE": str(path), "HEADRACE_BIND": "127.0.0.1:1", "HEADRACE_APPS": ""})
    assert made == {
        "HEADRACE_DATABASE_URL": "mysql://u:p#=@h/db",
        "HEADRACE_APPS": "acme_sync, other",
        "HUBSPOT_SECRET": "a b",
        "HEADRACE_BIND": "127.0.0.1:1",
    }


def test_the_usual_file_need_not_exist_and_a_named_one_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_file, "DEFAULT", tmp_path / "headrace.env")
    assert with_file({"A": "b"}) == {"A": "b"}
    (tmp_path / "headrace.env").write_text("HEADRACE_RETENTION_DAYS=7\n")
    assert with_file({"A": "b"}) == {"A": "b", "HEADRACE_RETENTION_DAYS": "7"}
    with pytest.raises(BadSetting, match="cannot be read"):
        with_file({"HEADRACE_ENV_FILE": str(tmp_path / "nothing.env")})


@pytest.mark.parametrize("line", ["HEADRACE_BIND", "not a setting", "=x", "HEADRACE BIND=x", "1A=x"])
def test_a_line_that_sets_nothing_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.env").write_text(f"# comment\n{line}\n")
    with pytest.raises(BadSetting, match=r"Line 2 of .*s\.env sets nothing; write NAME=value"):
        with_file({"HEADRACE_ENV_FILE": str(tmp_path / "s.env")})
