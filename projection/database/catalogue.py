"""The statement catalogue: named SQL texts from the `.sql` files of a folder, one text, one name, one caller.

A file holds statements that start with `-- name: <statement>`; the comment lines below a name are its contract (what changes,
which rows are locked and in what order, which index it must use, what 0 rows means).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

_VALUE: Final = re.compile(r"%\((\w+)\)s")
PROJECTION: Final = Path(__file__).parents[1]
_NAME: Final = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def catalogue(folder: Path) -> dict[str, str]:
    """Every statement below `folder`, by name. Raises ValueError when a name is used twice."""
    texts: dict[str, str] = {}
    for path in sorted(folder.rglob("*.sql")):
        pieces = _NAME.split(path.read_text(encoding="utf-8"))[1:]
        for name, body in zip(pieces[::2], pieces[1::2], strict=True):
            if name in texts:
                raise ValueError(f"statement {name} is defined twice (again in {path.name})")
            texts[name] = "\n".join(line for line in body.strip().splitlines() if not line.startswith("--"))
    return texts


@cache
def by_place(text: str) -> tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    """A text with at least two named values as one with values by place, and what puts named values into that order.

    The driver escapes values by name in a loop of its own; where one statement is all the work, that shows.
    """
    return _VALUE.sub("%s", text), itemgetter(*_VALUE.findall(text))


def statement(name: str) -> str:
    """SQL text of a projection statement. Raises KeyError for an unknown name."""
    return catalogue(PROJECTION)[name]
