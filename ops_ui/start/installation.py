"""What one checkout keeps on this host: its state folder, its secrets, its private database, and the environment of its processes.

Whatever the environment leaves open is made once under the state folder (`.local/` of the checkout) and kept:

    .local/secrets/secret_key, encryption_keys   mode 0600; lose the second one and stored endpoint secrets cannot be read any more
    .local/database/                             the private MariaDB, unless HEADRACE_DATABASE_URL names a server
"""

from __future__ import annotations

import base64
import ipaddress
import os
import pwd
import secrets
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ops_ui.config import environment
from ops_ui.config.database_url import database
from ops_ui.config.environment import CHECKOUT, FERNET_KEY_BYTES, Bind
from ops_ui.start import CannotStart
from ops_ui.start.private_database import PrivateDatabase

DATABASE_NAME: Final = "headrace"


@dataclass(frozen=True, slots=True)
class Installation:
    """`environ` is the whole environment of every process; `private` is None when HEADRACE_DATABASE_URL names a server."""

    state_dir: Path
    bind: Bind
    public_url: str
    environ: Mapping[str, str]
    private: PrivateDatabase | None


def open_installation(environ: Mapping[str, str], *, durable: bool = True) -> Installation:
    """The installation that `environ` describes, with everything made that is made once.

    `durable=False` is for tests: a database that is thrown away, and no setting that a quick start makes for its demo.
    Raises BadSetting or CannotStart, one sentence each.
    """
    values = environment.read(environ)
    state_dir: Path = values["STATE_DIR"] or CHECKOUT / ".local"
    own_folder(state_dir)
    own = {name: value for name, value in environ.items() if value or not name.startswith(environment.PREFIX)}
    own |= {"HEADRACE_STATE_DIR": str(state_dir), "DJANGO_SETTINGS_MODULE": "ops_ui.settings", "PYTHONUNBUFFERED": "1"}
    private = None
    if environment.is_set("DATABASE_URL", environ):
        database(values["DATABASE_URL"])
    else:
        sockets = environment.socket_folder(state_dir)
        folder = state_dir / "database"
        private = PrivateDatabase(folder, folder if sockets == state_dir else sockets, _os_user(), durable=durable)
        own["HEADRACE_DATABASE_URL"] = (
            f"mysql://{quote(private.user)}@localhost/{DATABASE_NAME}?socket={quote(str(private.socket))}"
        )
        if durable and not environment.is_set("DEMO", environ):
            own["HEADRACE_DEMO"] = "true"
        if environment.read(own)["DEMO"] and not environment.is_set("FORWARD_ALLOWED_NETWORKS", environ):
            own["HEADRACE_FORWARD_ALLOWED_NETWORKS"] = _own_network(values["BIND"])
    _keep_keys(state_dir / "secrets", environ, own, private)
    return Installation(state_dir, values["BIND"], values["PUBLIC_URL"], own, private)


def own_folder(path: Path) -> None:
    """Make sure that `path` is a folder that this process may write to. Raises CannotStart."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            return
    except OSError as error:
        raise CannotStart(
            f"The state folder {path} cannot be written to ({error.strerror}); "
            "grant this user write permission, or set HEADRACE_STATE_DIR to another folder."
        ) from None


def _own_network(bind: Bind) -> str:
    """The loopback address that a quick start listens on: the demo forwards to a receiver of Headrace's own. Empty for any other."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if bind.host == "localhost" else bind.host)
    except ValueError:
        return ""
    return str(ipaddress.ip_network(address)) if address.is_loopback else ""


def _os_user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise CannotStart(
            f"User id {os.geteuid()} has no name on this host, which the private MariaDB needs; "
            "run as a user of /etc/passwd or set HEADRACE_DATABASE_URL."
        ) from None


def _keep_keys(folder: Path, environ: Mapping[str, str], own: dict[str, str], private: PrivateDatabase | None) -> None:
    """Point `own` to the kept keys for those that `environ` does not set."""
    folder.mkdir(exist_ok=True, mode=0o700)
    if not environment.is_set("SECRET_KEY", environ):
        own["HEADRACE_SECRET_KEY_FILE"] = str(_kept(folder / "secret_key", lambda: secrets.token_urlsafe(48)))
    if not environment.is_set("ENCRYPTION_KEYS", environ):
        path = folder / "encryption_keys"
        if private is not None and private.is_installed() and not path.exists():
            raise CannotStart(
                f"{path} is missing, but the database in {private.folder} was encrypted with it; "
                "put the file back from a backup, or set HEADRACE_ENCRYPTION_KEYS."
            )
        own["HEADRACE_ENCRYPTION_KEYS_FILE"] = str(_kept(path, _fernet_key))


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(FERNET_KEY_BYTES)).decode("ascii")


def _kept(path: Path, make: Callable[[], str]) -> Path:
    """`path`, with a new value in it unless it exists. Two first starts at once agree on one value."""
    if path.exists():
        return path
    draft_fd, draft = tempfile.mkstemp(dir=path.parent)  # mode 0600
    try:
        with os.fdopen(draft_fd, "w", encoding="ascii") as file:
            file.write(make() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return path
    finally:
        Path(draft).unlink()
    return path
