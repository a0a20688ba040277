"""A backup brought back: into an empty database and an empty spool, under the keys that it needs, or not at all."""

from __future__ import annotations

import gzip
import hmac
import json
import shutil
import subprocess
import tempfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from ops_ui.backup.backup import DATABASE, FORMAT, MANIFEST, SPOOL, Manifest, checksums, fingerprints, seal
from ops_ui.backup.database_programs import Program, cannot_run_commands, load_program, option_file
from ops_ui.start.database_server import ensure_database

UNREADABLE: Final = "headrace.E007"


class NotRestored(Exception):
    """The message says why, what was left behind, and what to do."""


def restore(folder: Path, *, without_keys: bool = False) -> tuple[Manifest, list[str]]:
    """Bring back the backup in `folder`: its manifest, and a sentence for each stored secret that no key opens.

    `without_keys` goes on although keys are missing; then the seal cannot be checked. Raises NotRestored or NoProgram; before the load
    nothing was changed.
    """
    manifest = read_manifest(folder)
    missing = [key for key in manifest.keys if key not in fingerprints(settings.HEADRACE_ENCRYPTION_KEYS)]
    if missing and not without_keys:
        raise NotRestored(
            f"The backup was made under {len(manifest.keys)} encryption key(s), of which {len(missing)} are not in "
            "HEADRACE_ENCRYPTION_KEYS here; add the keys that were kept with it, or use --without-keys and set new secrets."
        )
    newer = sorted(set(manifest.migrations) - {".".join(key) for key in MigrationLoader(None).disk_migrations})
    if newer:
        raise NotRestored(
            f"The backup is of a newer version (its migration {newer[-1]} is unknown here); restore it with that version."
        )
    _check_files(folder, manifest)
    if not missing:
        _check_seal(manifest)
    program = load_program(manifest.family)
    _refuse_what_is_not_empty()
    _load(program, folder / DATABASE)
    _put_back_spool(folder / SPOOL)
    connection.close()
    found = checks.run_checks(tags=[checks.Tags.database], databases=["default"])
    return manifest, [str(one.msg) for one in found if one.id == UNREADABLE]


def read_manifest(folder: Path) -> Manifest:
    """Raises NotRestored for a folder that holds no finished backup of a known format."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="ascii"))
        if found["format"] != FORMAT:
            raise NotRestored(
                f"{folder} has format {found['format']}, but this version reads only format {FORMAT}; "
                "restore it with the version that made it."
            )
        manifest = Manifest(**found)
        if not (isinstance(manifest.files, dict) and isinstance(manifest.keys, list) and isinstance(manifest.migrations, list)):
            raise TypeError("a value has the wrong type")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NotRestored(f"{folder} is not a backup ({error}); name the folder that holds {MANIFEST}.") from None
    return manifest


def _check_files(folder: Path, manifest: Manifest) -> None:
    """Every file as the manifest says, and none beside."""
    there = checksums(folder)
    for name in sorted(there.keys() | manifest.files.keys()):
        if there.get(name) == manifest.files.get(name):
            continue
        what = "is damaged (its checksum differs)"
        if name not in there or name not in manifest.files:
            what = "is missing" if name not in there else "is not part of the backup"
        raise NotRestored(f"{folder / name} {what}; use another backup.")


def _check_seal(manifest: Manifest) -> None:
    """The manifest is what `backup` wrote: only who has its first key can write another."""
    sealing = [key for key in settings.HEADRACE_ENCRYPTION_KEYS if fingerprints([key]) == manifest.keys[:1]]
    seals = [seal(asdict(manifest), key).encode() for key in sealing]
    if not any(hmac.compare_digest(one, str(manifest.seal).encode()) for one in seals):
        raise NotRestored(f"{MANIFEST} was changed after the backup was made; use another backup.")


def _refuse_what_is_not_empty() -> None:
    ensure_database(settings.DATABASES["default"] | {"NAME": connection.settings_dict["NAME"]})
    name = connection.settings_dict["NAME"]
    if connection.introspection.table_names():
        raise NotRestored(f"The database {name} is not empty; point HEADRACE_DATABASE_URL at a new one, or drop this one first.")
    spool: Path = settings.HEADRACE_SPOOL_DIR
    if any(path.suffix == ".journal" for path in spool.rglob("*")):
        raise NotRestored(f"The spool {spool} contains deliveries; start the service to drain it, or move it away.")


def _load(program: Program, dump: Path) -> None:
    entry = settings.DATABASES["default"] | {"NAME": connection.settings_dict["NAME"]}
    said = ""
    with option_file(entry, program.family) as login, tempfile.TemporaryFile() as errors:
        command = [program.path, login, "--max-allowed-packet=1G", *cannot_run_commands(program), entry["NAME"]]
        try:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors) as process:  # noqa: S603  # found by its name
                assert process.stdin is not None  # noqa: S101  # it is a pipe
                with gzip.open(dump) as file:
                    shutil.copyfileobj(file, process.stdin)
        except (OSError, EOFError, zlib.error) as error:  # BrokenPipeError: the program has said why and ended
            said = str(error)
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip() or said
    if process.returncode or said:
        raise NotRestored(
            f"{Path(program.path).name} failed to load the backup ({said or f'exit code {process.returncode}'}). The database "
            f"{entry['NAME']} now contains a part of it; drop and create it, then restore again."
        )


def _put_back_spool(source: Path) -> None:
    target: Path = settings.HEADRACE_SPOOL_DIR
    for path in sorted(source.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(path, copy)
            copy.chmod(0o600)
