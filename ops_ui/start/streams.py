"""Standard output and standard error of a command, which must never end it: whatever the terminal can show, a text is written."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def write_any_text() -> None:
    """Escape what the terminal's encoding does not have; files and pipes get UTF-8, as `config apply` and `receive` read it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
