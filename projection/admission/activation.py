"""Activation: projections run only where the whole canonical schema is present and the checkpoint says so
(docs/protocol.md#activation).

Before it, events are inserted event-owned (an old binary may still run them) and only per-event work is claimed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from django.apps import apps
from django.db import DatabaseError

from projection.database.catalogue import execute, fetch
from projection.database.transactions import NO_SUCH_TABLE, error_code, run_unit

PROTOCOL_VERSION: Final = 2
"""2: the account is part of every identity."""
OLDER_IDENTITIES: Final = (
    "This database holds events of an older protocol, whose identities do not have the account in them, and they cannot be "
    "converted, because receivers know their WorkIds"
)
WAY_OUT: Final = "start with a new database, or keep running the version that made this one; docs/upgrading.md says how"
TABLE_PREFIX: Final = "_System_Connector"


class NotActivatable(RuntimeError):
    """The schema lacks what the protocol needs, or holds what it cannot go on with. The message names each part and the way out."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint row."""

    version: int
    fingerprint: str


_activated = False


def canonical_columns() -> set[tuple[str, str]]:
    """(table, column) of everything that the protocol relies on."""
    return {
        (model._meta.db_table, str(field.column))
        for model in apps.get_models()
        if model._meta.db_table.startswith(TABLE_PREFIX)
        for field in model._meta.concrete_fields
    }


def missing_columns() -> list[str]:
    """`table.column` of each canonical column that the database lacks (names compared in lower case). One query."""
    present = {(table.lower(), column.lower()) for table, column in fetch("read_columns")}
    return sorted(f"{table}.{column}" for table, column in canonical_columns() if (table.lower(), column.lower()) not in present)


def fingerprint() -> str:
    return hashlib.sha256("\n".join(f"{table}.{column}" for table, column in sorted(canonical_columns())).encode()).hexdigest()


def checkpoint() -> Checkpoint | None:
    """The checkpoint; None when there is none, or not even its table."""
    try:
        rows = fetch("read_checkpoint")
    except DatabaseError as error:
        if error_code(error) == NO_SUCH_TABLE:  # certainly not activated
            return None
        raise
    return Checkpoint(*rows[0]) if rows else None


def is_activated() -> bool:
    """Whether this database is activated for this protocol. Asked once; activation is never undone while processes run."""
    global _activated  # noqa: PLW0603 - a fact that only ever turns true
    if not _activated:
        found = checkpoint()
        _activated = found is not None and found.version == PROTOCOL_VERSION
    return _activated


def forget() -> None:
    """Ask the database again next time (tests, a new database)."""
    global _activated  # noqa: PLW0603 - as above
    _activated = False


def holds_older_identities() -> bool:
    """Whether the database was activated for an older protocol and holds events or receipts of it. One query."""
    return bool(fetch("read_older_identities", version=PROTOCOL_VERSION))


def activate(by: str) -> Checkpoint:
    """Check the whole canonical schema and write the checkpoint. Raises NotActivatable, naming each missing column, or saying that what
    is stored is of an older protocol.
    """
    missing = missing_columns()
    if missing:
        raise NotActivatable(
            f"not activated; {len(missing)} column(s) are missing, run script/manage migrate: {', '.join(missing)}"
        )
    if holds_older_identities():
        raise NotActivatable(f"not activated. {OLDER_IDENTITIES}: {WAY_OUT}")
    found = Checkpoint(PROTOCOL_VERSION, fingerprint())
    run_unit("activate", lambda: execute("write_checkpoint", version=found.version, fingerprint=found.fingerprint, by=by))
    forget()
    return found
