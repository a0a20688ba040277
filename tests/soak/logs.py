"""What the processes wrote: tracebacks, and lines that are not about ordinary work."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

TRACEBACK: Final = "Traceback (most recent call last)"
SHOWN: Final = 80
"""Characters of a sentence."""


def tracebacks(logs: Iterable[Path]) -> int:
    return sum(line.count(TRACEBACK) for line in _lines(logs))


def troubles(logs: Iterable[Path]) -> Counter[str]:
    """How often each kind of line above `info` was written; a line that is no JSON counts by its beginning."""
    found: Counter[str] = Counter()
    for line in _lines(logs):
        try:
            event = json.loads(line)
        except ValueError:
            found[line[:SHOWN]] += 1
            continue
        if event.get("level") != "info":
            what = str(event.get("reason") or event.get("error") or event.get("text") or event.get("state") or "")
            found[f"{event.get('event')}: {what[:SHOWN]}"] += 1
    return found


def _lines(logs: Iterable[Path]) -> Iterator[str]:
    for path in logs:
        yield from path.read_text(encoding="utf-8", errors="replace").splitlines()
