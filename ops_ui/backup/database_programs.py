"""The server's own programs for dump and load (`mariadb-dump`, `mariadb`, or MySQL's), with the connection of the settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ops_ui.config.database_url import demands_tls

DUMPS: Final = ("mariadb-dump", "mysqldump")
CLIENTS: Final = {"mariadb": ("mariadb", "mysql"), "mysql": ("mysql",)}
"""Which clients load the dump of which family: MySQL's own does not understand the first line of MariaDB's dumps."""


FORBIDDING: Final = {"--sandbox": "--sandbox", "--system-command": "--skip-system-command"}
"""What a client's help names → the option by which it runs no command of the host that a dump names (`\\!`): MariaDB's, MySQL's."""


class NoProgram(Exception):
    """A program of the database is missing here; the message names it and says how to get it."""


@dataclass(frozen=True, slots=True)
class Program:
    """`family` is `mariadb` or `mysql`, by what the program itself says; they differ in a few options."""

    path: str
    family: str


def dump_program() -> Program:
    """Raises NoProgram."""
    return _first(DUMPS)


def load_program(family: str) -> Program:
    """The client that loads a dump of this family. Raises NoProgram."""
    return _first(CLIENTS[family], family)


def cannot_run_commands(program: Program) -> list[str]:
    """The option with which this client runs nothing but SQL. Raises NoProgram for one that is too old to have one."""
    known = subprocess.run([program.path, "--no-defaults", "--help"], capture_output=True, text=True, check=False).stdout  # noqa: S603  # found by its name
    for named, option in FORBIDDING.items():
        if named in known:
            return [option]
    raise NoProgram(
        f"{program.path} cannot be kept from running commands that a changed dump contains; install a newer client "
        "(MariaDB 10.5.25, 10.6.18, 10.11.8 or later; MySQL 8.0.40 or later)."
    )


def _first(names: tuple[str, ...], family: str | None = None) -> Program:
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603  # found by its name
        found = Program(path, "mariadb" if "MariaDB" in said else "mysql")
        if family in (None, found.family):
            return found
    raise NoProgram(
        f"There is no {' or '.join(names)} on this host; install it (on Debian and Ubuntu: apt-get install mariadb-client)."
    )


@contextmanager
def option_file(settings: Mapping[str, Any], family: str) -> Iterator[str]:
    """The first argument of a program that connects by a DATABASES entry. The password stands in a file of mode 0600."""
    lines = ["[client]", *(f"{name} = {_quoted(value)}" for name, value in _options(settings, family).items())]
    handle, path = tempfile.mkstemp(prefix="headrace-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        yield f"--defaults-file={path}"
    finally:
        Path(path).unlink()


def _options(settings: Mapping[str, Any], family: str) -> dict[str, str]:
    host = str(settings["HOST"])
    if host.startswith("/"):
        place = {"socket": host}
    elif host == "localhost":  # the client library takes it for its default socket, whatever the port; so must the programs
        place = {"host": host}
    else:
        place = {"host": host, "port": str(settings["PORT"])}
    options = {"user": str(settings["USER"]), "password": str(settings["PASSWORD"]), **place, "default-character-set": "utf8mb4"}
    if not demands_tls(settings):
        return options
    ca = settings["OPTIONS"].get("ssl", {}).get("ca")
    if family == "mysql":
        mode = str(settings["OPTIONS"]["ssl_mode"])
        return options | {"ssl-mode": mode} | ({"ssl-ca": ca} if ca else {})
    return options | {"ssl": "1"} | ({"ssl-ca": ca, "ssl-verify-server-cert": "1"} if ca else {})


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
