"""What the dump and load programs are told about the connection, and how."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ops_ui.backup import database_programs
from ops_ui.backup.database_programs import NoProgram, dump_program, load_program, option_file
from ops_ui.config.database_url import database


def written(url: str, family: str) -> dict[str, str]:
    with option_file(database(url), family) as login:
        path = Path(login.removeprefix("--defaults-file="))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        heading, *lines = path.read_text(encoding="utf-8").splitlines()
    assert heading == "[client]"
    assert not path.exists()
    return {name: value.strip('"') for name, value in (line.split(" = ", 1) for line in lines)}


def test_a_host_and_a_socket() -> None:
    found = written("mysql://u:p@db.example:3307/headrace", "mariadb")
    assert found == {
        "user": "u",
        "password": "p",
        "host": "db.example",
        "port": "3307",
        "default-character-set": "utf8mb4",
    }
    assert "port" not in written("mysql://u@localhost:3307/headrace", "mariadb"), "the service uses the default socket there, too"
    assert written("mysql://u@localhost/headrace?socket=/run/my.sock", "mysql")["socket"] == "/run/my.sock"


@pytest.mark.parametrize(
    ("family", "required", "verified"),
    [
        ("mariadb", {"ssl": "1"}, {"ssl": "1", "ssl-ca": "{ca}", "ssl-verify-server-cert": "1"}),
        ("mysql", {"ssl-mode": "REQUIRED"}, {"ssl-mode": "VERIFY_IDENTITY", "ssl-ca": "{ca}"}),
    ],
)
def test_tls_is_demanded_in_the_words_of_each_family(
    family: str, required: dict[str, str], verified: dict[str, str], tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()

    def tls(query: str) -> dict[str, str]:
        found = written(f"mysql://u@db.example/headrace{query}", family)
        return {name: value.replace(str(ca), "{ca}") for name, value in found.items() if name.startswith("ssl")}

    assert tls("") == {}
    assert tls("?ssl=required") == required
    assert tls(f"?ssl=verify-full&ca={ca}") == verified


@pytest.mark.parametrize("text", ["plain", 'a"b', "a\\b", "a#b", "a b ", "a'b", "ä€", "$(id)", "[client]", "\\n"])
def test_the_programs_read_every_text_as_it_is(text: str) -> None:
    """A user's name here, because a password is not printed; both are written alike."""
    settings: dict[str, Any] = database("mysql://u@db.example/headrace") | {"USER": text}
    program = dump_program()
    with option_file(settings, program.family) as login:
        said = subprocess.run([program.path, login, "--print-defaults"], capture_output=True, text=True, check=True).stdout
    assert f"--user={text} --password=" in said


def test_no_program_is_an_answer_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NoProgram, match="no mariadb-dump or mysqldump on this host; install it"):
        dump_program()
    with pytest.raises(NoProgram, match="no mysql on this host"):
        load_program("mysql")


def test_a_dump_is_loaded_by_a_client_of_its_family(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, said in (("mariadb", "mariadb from 11.8.3-MariaDB"), ("mysql", "mysql Ver 9.7.4 for Linux")):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho {said}\n", encoding="ascii")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert database_programs.load_program("mariadb").path == str(tmp_path / "mariadb")
    assert database_programs.load_program("mysql").path == str(tmp_path / "mysql")
