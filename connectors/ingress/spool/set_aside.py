"""What the drain set aside for an operator: deliveries that the database refused, and bytes that no longer are what was written.

Each is a file under `spool/aside`; beside a refused one stands what the database said, in a hidden file. Nothing here reads a database.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from connectors.ingress.spool import files, journal
from connectors.ingress.spool.files import Journal
from connectors.ingress.spool.spooled import SpooledDelivery, UnknownRecord

REFUSED: Final = "refused"
LONGEST_REASON: Final = 2000
"""Characters of it that are kept."""


@dataclass(frozen=True, slots=True)
class Aside:
    """One file. `kind`: `refused`, `damaged` or `torn`. `delivery` None: it holds none that could be read."""

    path: Path = field(repr=False)
    kind: str
    size: int
    reason: str = ""
    delivery: SpooledDelivery | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def arrived(self) -> datetime | None:
        """By this host's clock."""
        arrived_us = self.delivery.arrived_us if self.delivery else None
        return None if arrived_us is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=arrived_us)

    def facts(self) -> dict[str, Any]:
        """What a list shows of it: never its body."""
        draft = self.delivery.draft if self.delivery else None
        return {
            "name": self.name,
            "kind": self.kind,
            "bytes": self.size,
            "endpoint": f"{draft.namespace}/{self.delivery.slug}" if draft and self.delivery else None,
            "delivery_id": draft.idempotency_key if draft else None,
            "arrived": self.arrived,
            "reason": self.reason or None,
        }

    def contents(self) -> dict[str, Any]:
        """The delivery as `receive` takes it: stored headers and body; `body_base64` where that is no text."""
        if self.delivery is None:
            return self.facts() | {"body_base64": base64.b64encode(self.path.read_bytes()).decode("ascii")}
        headers = json.loads(self.delivery.draft.headers)
        try:
            return self.facts() | {"headers": headers, "body": self.delivery.draft.body.decode("utf-8")}
        except UnicodeDecodeError:
            return self.facts() | {"headers": headers, "body_base64": base64.b64encode(self.delivery.draft.body).decode("ascii")}


def found() -> list[Aside]:
    """Everything that was set aside, oldest first. Reads each file."""
    return [_read(path) for path in files.aside_files()]


def keep_refused(one: Journal, start: int, payload: bytes, reason: str) -> None:
    """Set a record aside that the database does not take, with what it said; doing it again changes nothing."""
    name = Path(files.name_of(one.created_ns, one.key, start)).with_suffix(f".{REFUSED}").name
    files.set_aside(f".{name}.reason", reason[:LONGEST_REASON].encode("utf-8", "replace"))
    files.set_aside(name, journal.framed(payload, one.key))


def give_back(one: Aside) -> bool:
    """Let the drain try a refused delivery again; False = it is something else."""
    if not files.requeue(one.path):
        return False
    _reason_of(one.path).unlink(missing_ok=True)
    return True


def discard(one: Aside) -> None:
    """Remove it for good."""
    one.path.unlink(missing_ok=True)
    _reason_of(one.path).unlink(missing_ok=True)


def _read(path: Path) -> Aside:
    kind, size, reason, delivery = path.suffix.removeprefix("."), 0, "", None
    with suppress(FileNotFoundError):  # given back meanwhile
        data = path.read_bytes()
        size = len(data)
        delivery = next(_deliveries(path, data), None) if kind == REFUSED else None
    with suppress(FileNotFoundError):
        reason = _reason_of(path).read_text(encoding="utf-8")
    return Aside(path, kind, size, reason, delivery)


def _deliveries(path: Path, data: bytes) -> Iterator[SpooledDelivery]:
    journal_of_it = Journal.of(path.with_suffix(".journal"))
    for record in journal.records(data, journal_of_it.key) if journal_of_it else ():
        if isinstance(record, journal.Whole):
            with suppress(UnknownRecord):
                yield SpooledDelivery.of(record.payload)


def _reason_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.reason")
