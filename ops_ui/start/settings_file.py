"""The settings file: `NAME=value` lines for every process of an installation, so that a second terminal needs no variables of its own.

`.local/headrace.env` of the checkout if it exists, or what HEADRACE_ENV_FILE names. A variable that is set in the environment wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ops_ui.config.environment import CHECKOUT, PREFIX, BadSetting

VARIABLE: Final = f"{PREFIX}ENV_FILE"
DEFAULT: Final = CHECKOUT / ".local" / "headrace.env"
_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_QUOTED: Final = re.compile(r"""(["'])(.*)\1""", re.DOTALL)


def with_file(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment together with the settings file. Raises BadSetting for a file that cannot be read or a line that sets nothing."""
    named = environ.get(VARIABLE)
    path = CHECKOUT / Path(named).expanduser() if named else DEFAULT
    own = {name: value for name, value in environ.items() if name != VARIABLE}
    if not named and not path.exists():
        return own
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(
            f"The settings file {path} cannot be read ({error}); correct it, its permissions, or {VARIABLE}."
        ) from None
    return parse(text, path) | {name: value for name, value in own.items() if value}


def parse(text: str, path: Path) -> dict[str, str]:
    """What the lines set; quotes around a whole value are left out. Raises BadSetting."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise BadSetting(f"Line {number} of {path} sets nothing; write NAME=value, or # before a comment.")
        quoted = _QUOTED.fullmatch(match[2])
        found[match[1]] = quoted[2] if quoted else match[2]
    return found
