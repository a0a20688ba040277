"""The append-only record of who did what to what, when and why."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from connectors.models import AuditEntry
from projection.database import clock
from projection.safe_text import storable, storable_actor

TARGET_CHARACTERS: Final = 255


def record(  # noqa: PLR0917  # the contract between modules
    actor: str, action: str, target: str, reason: str = "", count: int = 1, detail: Mapping[str, Any] | None = None
) -> AuditEntry:
    """Append one entry, in the caller's transaction if there is one, so that an undone change leaves none.

    `action` is `<what>.<verb>`, e.g. `endpoint.rotate`; `count` is how many things it changed; `detail` must be JSON values and
    never hold a secret.
    """
    entry = _entry(clock.now(), actor, action, target, reason, count, detail)
    entry.save(force_insert=True)
    return entry


def record_each(actor: str, action: str, details: Mapping[str, Mapping[str, Any]], reason: str) -> None:
    """As `record`, an entry for each target → detail. Two statements, whatever their number."""
    if details:
        now = clock.now()
        AuditEntry.objects.bulk_create(_entry(now, actor, action, target, reason, 1, detail) for target, detail in details.items())


def _entry(  # noqa: PLR0917  # as `record`
    at: datetime, actor: str, action: str, target: str, reason: str, count: int, detail: Mapping[str, Any] | None
) -> AuditEntry:
    return AuditEntry(
        at=at,
        actor=storable_actor(actor),
        action=action,
        target=storable(target)[:TARGET_CHARACTERS],
        reason=storable(reason),
        count=count,
        detail=json.dumps(dict(detail or {}), sort_keys=True),
    )


def cli_actor() -> str:
    """The actor of a command: `cli:<user of the operating system>`, or its number where it has no name."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's numeric user: no name in its password file
        return f"cli:{os.getuid()}"
