"""A backup of a filled installation, brought back on a fresh database: the same rows, an audit that finds nothing, secrets that open."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from ops_ui.backup.backup import checksums
from ops_ui.config.environment import CHECKOUT
from tests.acceptance.service import PATIENCE_SECONDS, Service, own_database, service
from tests.support.running import start_environment, state_folder

pytestmark = pytest.mark.acceptance

JOURNAL = Path("spool") / "00000000000000000001-0123456789abcdef0123456789abcdef.journal"
CHANGED_BY_THE_RESTORE = {"_system_connectoraudit"}
LEFT_OUT = {"django_session"}


LOG_IN = """
from django.contrib.sessions.backends.db import SessionStore
store = SessionStore()
store["_auth_user_id"] = "1"
store.create()
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Service]:
    """The demo, worked off: receipts, events, work in several states, dead letters, records, secrets of endpoints and connections."""
    with service() as made:
        made.environment["HEADRACE_BIND"] = f"127.0.0.1:{made.port}"  # where the demo forwards to
        web, cluster = made.start()
        run(made.environment, "manage.py", "load_demo")
        run(made.environment, "manage.py", "shell", "-c", LOG_IN)
        made.until_idle()
        for process in (web, cluster):
            process.ask_to_stop()
            process.wait()
        yield made


@pytest.fixture(scope="module")
def made(site: Service) -> Path:
    """Its backup. The journal stands for deliveries that came while the database was away."""
    journal = site.folder / JOURNAL
    journal.parent.mkdir(exist_ok=True)
    journal.write_bytes(bytes(range(256)))
    return Path(site.manage("backup", str(site.folder / "backups"))["backup"])


@dataclass
class Fresh:
    """A host with an empty database and an empty state folder, under the given keys."""

    environment: dict[str, str]
    url: str

    def restore(self, folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
        """As `script/manage restore`, which must not fill the database first."""
        command = ["-m", "ops_ui.start", "manage", "restore", str(folder), "--json", *arguments]
        done = run(self.environment, *command, check=False)
        return done.returncode, json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def fresh(site: Service) -> Iterator[Fresh]:
    with state_folder() as folder, own_database(os.environ["HEADRACE_DATABASE_URL"]) as url:
        environment = start_environment(folder, HEADRACE_DATABASE_URL=url, DJANGO_SETTINGS_MODULE="ops_ui.settings")
        for name in ("HEADRACE_SECRET_KEY", "HEADRACE_ENCRYPTION_KEYS"):
            environment[name] = site.environment[name]
        yield Fresh(environment, url)


def run(environment: dict[str, str], *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE_SECONDS,
        check=False,
    )  # fmt: skip
    assert not check or done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
    return done


def tables(site: Service, url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of a database on the same server."""
    name = url.partition("?")[0].rpartition("/")[2]
    found = {str(row[0]) for row in site.fetch(f"SHOW TABLES FROM `{name}`")}
    return {table.lower(): sorted(site.fetch(f"SELECT * FROM `{name}`.`{table}`"), key=repr) for table in found}


def test_a_restored_backup_is_the_same_installation(site: Service, made: Path, fresh: Fresh) -> None:
    before = tables(site, site.environment["HEADRACE_DATABASE_URL"])
    filled = {name for name, rows in before.items() if rows}
    for table in ("receipt", "event", "workitem", "workfailure", "record", "endpoint", "connection"):
        assert any(name.endswith(f"connector{table}") for name in filled), f"the demo left no {table}: {sorted(filled)}"

    code, answer = fresh.restore(made)
    assert (code, answer["unreadable_secrets"], answer["refused"]) == (0, [], [])
    after = tables(site, fresh.url)
    different = {name for name in before | after if before.get(name) != after.get(name)}
    assert different == CHANGED_BY_THE_RESTORE | LEFT_OUT
    assert after["django_session"] == [], "who is logged in is nothing that a copy may bring along"

    state = Path(fresh.environment["HEADRACE_STATE_DIR"])
    assert (state / JOURNAL).read_bytes() == bytes(range(256))
    report = json.loads(run(fresh.environment, "manage.py", "audit", "--json").stdout)
    assert (report["ok"], report["violations"]) == (True, [])
    rewrapped = json.loads(run(fresh.environment, "manage.py", "secrets", "rewrap", "--json").stdout)
    assert rewrapped["rewrapped"] > 0
    assert rewrapped["refused"] == []
    dead = json.loads(run(fresh.environment, "manage.py", "dlq", "replay", "--all", "--reason", "restored", "--json").stdout)
    assert dead["replayed"], "work goes on where it stood"


def test_a_copy_that_was_restored_paused_executes_nothing(made: Path, fresh: Fresh) -> None:
    code, answer = fresh.restore(made, "--paused")
    assert (code, answer["refused"]) == (0, [])
    listed = json.loads(run(fresh.environment, "manage.py", "namespaces", "list", "--json").stdout)["namespaces"]
    assert [row["name"] for row in listed if row["paused_at"] and not row["resume_at"]] == answer["paused"]
    assert "demo" in answer["paused"]
    run(fresh.environment, "manage.py", "dlq", "replay", "--all", "--reason", "restored", "--json")
    run(fresh.environment, "manage.py", "run_worker", "--drain")
    waiting = json.loads(run(fresh.environment, "manage.py", "work", "list", "--state", "pending", "--json").stdout)
    assert waiting["work_items"], "what is paused waits"


def test_nobody_else_can_read_a_backup_and_no_key_is_in_it(site: Service, made: Path) -> None:
    keys = [site.environment["HEADRACE_ENCRYPTION_KEYS"], site.environment["HEADRACE_SECRET_KEY"]]
    for path in [made, *made.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        assert not path.is_file() or all(key.encode() not in path.read_bytes() for key in keys)


def test_without_its_keys_nothing_is_restored_unless_told_so(site: Service, made: Path, fresh: Fresh) -> None:
    fresh.environment["HEADRACE_ENCRYPTION_KEYS"] = Fernet.generate_key().decode()
    code, answer = fresh.restore(made)
    assert code == 1
    assert "HEADRACE_ENCRYPTION_KEYS" in answer["refused"][0]["reason"]
    assert tables(site, fresh.url) == {}

    code, answer = fresh.restore(made, "--without-keys")
    assert code == 1
    assert answer["unreadable_secrets"]


def test_keys_that_were_added_since_do_no_harm(made: Path, fresh: Fresh) -> None:
    old = fresh.environment["HEADRACE_ENCRYPTION_KEYS"]
    fresh.environment |= {"HEADRACE_ENCRYPTION_KEYS": f"{Fernet.generate_key().decode()} {old}"}
    fresh.environment |= {"HEADRACE_SECRET_KEY": secrets.token_urlsafe(48)}  # all log in again, no more
    assert fresh.restore(made)[0] == 0


def test_a_filled_database_is_not_touched(site: Service, made: Path) -> None:
    before = tables(site, site.environment["HEADRACE_DATABASE_URL"])
    answer = site.manage("restore", str(made), expect=1)
    assert "is not empty" in answer["refused"][0]["reason"]
    assert tables(site, site.environment["HEADRACE_DATABASE_URL"]) == before


def test_a_backup_that_was_changed_is_refused(site: Service, made: Path, fresh: Fresh, tmp_path: Path) -> None:
    copy = copied(made, tmp_path)
    with (copy / "database.sql.gz").open("r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"x")
    code, answer = fresh.restore(copy)
    assert code == 1
    assert "checksum" in answer["refused"][0]["reason"]
    assert tables(site, fresh.url) == {}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("format", 1, "format 1"),
        ("files", 7, "is not a backup"),
        ("keys", [], "was changed"),
        ("seal", "é", "was changed"),
        ("migrations", ["projection.9999_later"], "newer version"),
        ("unknown", 1, "is not a backup"),
    ],
)
def test_a_backup_of_another_kind_is_refused(
    made: Path, fresh: Fresh, tmp_path: Path, name: str, value: object, reason: str
) -> None:
    copy = copied(made, tmp_path)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="ascii"))
    (copy / "manifest.json").write_text(json.dumps(manifest | {name: value}), encoding="ascii")
    code, answer = fresh.restore(copy)
    assert code == 1
    assert reason in answer["refused"][0]["reason"]


@pytest.mark.parametrize("change", ["statement", "journal", "more"])
def test_a_changed_backup_whose_checksums_were_changed_too_is_refused_and_runs_nothing(
    site: Service, made: Path, fresh: Fresh, tmp_path: Path, change: str
) -> None:
    """Also without its keys: a client of the database must not run what a dump tells it to."""
    copy, sprung = copied(made, tmp_path), tmp_path / "sprung"
    if change == "statement":
        (copy / "database.sql.gz").write_bytes(gzip.compress(f"\\! touch {sprung}\nsystem touch {sprung}\n".encode()))
    else:
        (copy / (JOURNAL if change == "journal" else "spool/other.journal")).write_bytes(b"forged")
    manifest = json.loads((copy / "manifest.json").read_text(encoding="ascii"))
    (copy / "manifest.json").write_text(json.dumps(manifest | {"files": checksums(copy)}), encoding="ascii")
    code, answer = fresh.restore(copy)
    assert code == 1
    assert "was changed after the backup was made" in answer["refused"][0]["reason"]
    assert tables(site, fresh.url) == {}
    if change == "statement":
        fresh.environment["HEADRACE_ENCRYPTION_KEYS"] = Fernet.generate_key().decode()
        assert fresh.restore(copy, "--without-keys")[0] == 1
    assert not sprung.exists()


def test_a_client_that_cannot_be_kept_from_commands_loads_nothing(site: Service, made: Path, fresh: Fresh, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mariadb", "mysql"):
        (programs / name).write_text("#!/bin/sh\necho MariaDB\n", encoding="ascii")
        (programs / name).chmod(0o755)
    fresh.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    done = run(fresh.environment, "-m", "ops_ui.start", "manage", "restore", str(made), "--json", check=False)
    assert done.returncode == 2
    assert "install a newer client" in json.loads(done.stdout.splitlines()[-1])["error"]["reason"]
    assert tables(site, fresh.url) == {}


def test_a_dump_that_breaks_off_leaves_nothing_behind(site: Service, tmp_path: Path) -> None:
    """Also where the program says that all is well."""
    programs, target = tmp_path / "bin", tmp_path / "backups"
    programs.mkdir()
    fake = programs / "mariadb-dump"
    fake.write_text("#!/bin/sh\nif [ $1 = --version ]; then echo MariaDB; else echo 'CREATE TABLE'; fi\n", encoding="ascii")
    fake.chmod(0o755)
    environment = site.environment | {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = run(environment, "manage.py", "backup", str(target), "--json", check=False)
    assert done.returncode == 1
    assert "did not finish" in json.loads(done.stdout)["refused"][0]["reason"]
    assert list(target.iterdir()) == []


def test_an_empty_database_is_no_installation(fresh: Fresh, tmp_path: Path) -> None:
    done = run(fresh.environment, "manage.py", "backup", str(tmp_path / "backups"), "--json", check=False)
    assert done.returncode == 1
    assert "contains no installation" in json.loads(done.stdout)["refused"][0]["reason"]
    assert not (tmp_path / "backups").exists()


def test_a_missing_program_is_named_with_its_package(site: Service, tmp_path: Path) -> None:
    done = run(site.environment | {"PATH": str(tmp_path)}, "manage.py", "backup", str(tmp_path / "backups"), "--json", check=False)
    assert done.returncode == 2
    assert "apt-get install mariadb-client" in json.loads(done.stdout)["error"]["reason"]


def copied(made: Path, target: Path) -> Path:
    copy = target / "copy"
    (copy / "spool").mkdir(parents=True)
    for path in made.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(made)).write_bytes(path.read_bytes())
    return copy
