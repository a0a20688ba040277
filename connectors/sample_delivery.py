"""A sample of what a pack's provider sends, for a delivery of one's own making. The default is the pack's own `fixture.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FIXTURE: Final = "fixture.json"


@dataclass(frozen=True, slots=True)
class Sample:
    """Headers and parsed body of one delivery, before it is signed."""

    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The body as people edit it."""
        return json.dumps(self.body, indent=2, ensure_ascii=False)


def of_fixture(pack: type[Any]) -> Sample | None:
    """The first delivery of the file beside the module of a pack's class; None: there is none, or it is none of ours."""
    source = getattr(sys.modules.get(pack.__module__), "__file__", None)
    if source is None:
        return None
    try:
        found = json.loads((Path(source).parent / FIXTURE).read_text(encoding="utf-8"))
        first = found["deliveries"][0]
        return Sample({str(name): str(value) for name, value in first.get("headers", {}).items()}, first["body"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # somebody else's file, of another form
        return None


def put(into: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    """`value` at a path of member names within nested objects; a path through an array is left out (samples have objects)."""
    names = [step for step in path if isinstance(step, str)]
    if not names or len(names) != len(path):
        return
    for name in names[:-1]:
        inner = into.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        into = inner
    into[names[-1]] = value
