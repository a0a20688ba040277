"""Where the interpreters of a test run keep compiled modules.

Tests start hundreds of processes, and compiling the product is three quarters of what the start of one costs. Some systems forbid
bytecode beside the sources (PYTHONDONTWRITEBYTECODE); a folder of its own leaves the sources alone.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / ".local" / "bytecode"


def keep_bytecode(environ: MutableMapping[str, str]) -> None:
    """Let this process and those that it starts with `environ` read and write compiled modules in `.local/bytecode`."""
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environ["PYTHONPYCACHEPREFIX"] = str(FOLDER)
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(FOLDER)
