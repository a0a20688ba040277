"""A backup of one installation: the database as of one moment, this host's spool, and a manifest by which both are known again.

    <folder>/20261129T031700Z/
        database.sql.gz     everything in the database but sessions, one consistent snapshot, taken while the service runs
        spool/              deliveries that this host accepted while the database was away
        manifest.json       what it is, the checksums of its files, which encryption keys it needs (their fingerprints, never the
                            keys), and a seal under the first of them, so that a changed backup is not restored

The keys are not in it, on purpose: whoever gets hold of a backup must not read the stored secrets with it. Keep them elsewhere.
Sessions are left out: one that is copied from a backup would log its holder in.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from ops_ui.backup.database_programs import Program, dump_program, option_file
from projection.cli import iso
from projection.database import clock

FORMAT: Final = 2
DATABASE: Final = "database.sql.gz"
SPOOL: Final = "spool"
MANIFEST: Final = "manifest.json"
COMPLETED: Final = b"-- Dump completed"
"""What the dump programs write last; a dump without it was cut off."""
SESSIONS: Final = "django_session"
CHUNK_BYTES: Final = 1024 * 1024
TAIL_BYTES: Final = 200
COMPRESSION: Final = 4
"""Of gzip: JSON shrinks to a tenth at any level, and the higher ones only take longer."""
FINGERPRINT_CHARACTERS: Final = 16


class BackupFailed(Exception):
    """Nothing that could be taken for a backup was left behind; the message says what went wrong."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """`family` = whose dump program wrote it; `keys` = fingerprints of HEADRACE_ENCRYPTION_KEYS, in their order; `files` = SHA-256 of
    each file, by its path in the backup; `seal` = HMAC-SHA256 of all the rest under the first key."""

    format: int
    made_at: str
    server: str
    family: str
    files: dict[str, str]
    migrations: list[str]
    keys: list[str]
    seal: str = ""

    @property
    def spool_files(self) -> int:
        return len(self.files) - 1


def backup(folder: Path) -> Path:
    """Make a backup in a new folder below `folder`, named by the time. Raises BackupFailed or NoProgram."""
    program = dump_program()
    connection.ensure_connection()  # under TLS if it must be, or it ends here
    migrations = sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())
    if not migrations:
        raise BackupFailed(
            f"The database {connection.settings_dict['NAME']} contains no installation. Check HEADRACE_DATABASE_URL."
        )
    moment = clock.now()
    target = folder / moment.strftime("%Y%m%dT%H%M%SZ")
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{target.name}.unfinished-", dir=folder))  # mode 0700
    try:
        # The spool first: a record that is drained in between is then in both, and known by its delivery id; the other way round it
        # would be in neither.
        _copy_spool(draft / SPOOL)
        _dump(program, draft / DATABASE)
        made = Manifest(
            format=FORMAT,
            made_at=iso(moment) or "",
            server=_server(),
            family=program.family,
            files=checksums(draft),
            migrations=migrations,
            keys=fingerprints(settings.HEADRACE_ENCRYPTION_KEYS),
        )
        sealed = asdict(made) | {"seal": seal(asdict(made), settings.HEADRACE_ENCRYPTION_KEYS[0])}
        (draft / MANIFEST).write_text(json.dumps(sealed, indent=1) + "\n", encoding="ascii")
        for path in draft.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        _make_durable([*draft.rglob("*"), draft])
        draft.rename(target)
        _make_durable([folder])
    except OSError as error:
        raise BackupFailed(f"The backup could not be written ({error}). Check the folder and its free space.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def fingerprints(keys: Iterable[str]) -> list[str]:
    """By which a key is known again, and from which it cannot be found."""
    return [hashlib.sha256(f"headrace key {key}".encode()).hexdigest()[:FINGERPRINT_CHARACTERS] for key in keys]


def seal(manifest: Mapping[str, object], key: str) -> str:
    """Only who has the key can make it; `manifest` with or without a seal."""
    content = json.dumps({name: value for name, value in manifest.items() if name != "seal"}, sort_keys=True)
    return hmac.new(f"headrace backup {key}".encode(), content.encode(), hashlib.sha256).hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of a backup but its manifest."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != MANIFEST:
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _copy_spool(target: Path) -> None:
    """Copy this host's spool, subfolders included. Files that were drained meanwhile are in the dump."""
    source: Path = settings.HEADRACE_SPOOL_DIR
    target.mkdir()
    for path in sorted(source.rglob("*")) if source.is_dir() else ():
        copy = target / path.relative_to(source)
        try:
            if path.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        except FileNotFoundError:
            continue


def _dump(program: Program, target: Path) -> None:
    """One consistent snapshot, without locks that anybody would notice. Of sessions only the empty table."""
    name = connection.settings_dict["NAME"]
    options = ["--single-transaction", "--quick", "--hex-blob", "--no-tablespaces", "--skip-lock-tables", "--max-allowed-packet=1G"]
    if program.family == "mysql":
        options += ["--set-gtid-purged=OFF", "--column-statistics=0"]
    with gzip.open(target, "wb", compresslevel=COMPRESSION) as file:
        _write(program, [*options, f"--ignore-table={name}.{SESSIONS}", name], file)
        _write(program, [*options, "--no-data", name, SESSIONS], file)


def _write(program: Program, arguments: list[str], file: gzip.GzipFile) -> None:
    """What the dump program says with these arguments. Raises BackupFailed when it did not come to its end."""
    tail = b""
    with option_file(settings.DATABASES["default"], program.family) as login, tempfile.TemporaryFile() as errors:
        with subprocess.Popen([program.path, login, *arguments], stdout=subprocess.PIPE, stderr=errors) as process:  # noqa: S603  # found by its name
            assert process.stdout is not None  # noqa: S101  # it is a pipe
            while chunk := process.stdout.read(CHUNK_BYTES):
                file.write(chunk)
                tail = (tail + chunk)[-TAIL_BYTES:]
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip()
    if process.returncode or COMPLETED not in tail:
        raise BackupFailed(f"{Path(program.path).name} did not finish ({said or f'exit code {process.returncode}'}).")


def _make_durable(paths: Iterable[Path]) -> None:
    """A backup that a power cut empties is none."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _server() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return str(cursor.fetchone()[0])
