"""What the running `script/server` was started with, kept for commands in other terminals: they act on the same database, or not at all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ops_ui.config import environment
from ops_ui.config.environment import CHECKOUT, PREFIX
from ops_ui.start import CannotStart
from ops_ui.start.locks import is_held

SERVER_LOCK: Final = "server.lock"
"""Of the state folder; held by the server that runs."""
FILE: Final = "running-settings.json"
PATHS: Final = "PYTHONPATH"
SERVERS_OWN: Final = frozenset({f"{PREFIX}BIND", f"{PREFIX}BIND_FILE", f"{PREFIX}STATE_DIR", f"{PREFIX}STATE_DIR_FILE"})
"""Taken from the server and not compared: a command cannot know which port the system chose, and found the server by its folder."""


@contextmanager
def kept(state_dir: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """While the block runs, `state_dir` holds what the server was started with; mode 0600, as it may hold passwords."""
    path = state_dir / FILE
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({name: value for name, value in environ.items() if name.startswith(PREFIX) or name == PATHS}, file)
    draft.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def adopted(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: what it does not set is the running server's. Without a running server it stays as it is.

    Raises CannotStart when it sets something else than the server has.
    """
    state_dir: Path = environment.read(environ)["STATE_DIR"] or CHECKOUT / ".local"
    running = _of_server(state_dir)
    own = {name: value for name, value in environ.items() if value or not name.startswith(PREFIX)}
    if running is None:
        return own
    own = {name: value for name, value in own.items() if name not in SERVERS_OWN}
    for name in sorted(own):
        if name.startswith(PREFIX) and own[name] != running.get(name):
            raise CannotStart(
                f"{name} is not what the running server was started with, so this command would act on something else. "
                f"Unset it, or stop the server of {state_dir} first."
            )
    paths = [part for part in running.get(PATHS, "").split(os.pathsep) if part]
    sys.path += [part for part in paths if part not in sys.path]  # where HEADRACE_APPS is looked for
    both = os.pathsep.join([*(part for part in own.get(PATHS, "").split(os.pathsep) if part), *paths])
    return running | own | ({PATHS: both} if both else {})


def _of_server(state_dir: Path) -> dict[str, str] | None:
    """None: no server runs from this folder."""
    if not (state_dir / FILE).exists():
        return None
    if not is_held(state_dir / SERVER_LOCK):
        return None  # it was killed, and left its file behind
    try:
        found: dict[str, str] = json.loads((state_dir / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # it ends just now
    return found
