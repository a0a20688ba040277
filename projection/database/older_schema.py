"""A schema from before replays: per-event work runs although `ReplayOfWorkId` is missing (docs/protocol.md#activation); projections
wait for the activation.

The column is the only one of a canonical statement that an older installation may lack. Every text that names it is read as if it were
NULL in each row, so there is one set of statements; only the insert of work items, which cannot leave it out, has a second text.
"""

from __future__ import annotations

import re
from typing import Final

from django.db import connection

COLUMN: Final = "ReplayOfWorkId"
_NAMED: Final = re.compile(r"(?:\b\w\.)?\bReplayOfWorkId\b")
_FORCED: Final = re.compile(r" FORCE INDEX \(ReplayOfWorkId\)")

_is_there = False


def is_before_replays() -> bool:
    """Whether the column is missing. One query, until it was there once: columns do not go away while processes run."""
    global _is_there  # noqa: PLW0603 - a fact that only ever turns true
    if not _is_there:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() "
                "AND LOWER(TABLE_NAME) = '_system_connectorworkitem' AND LOWER(COLUMN_NAME) = 'replayofworkid'"
            )
            _is_there = bool(cursor.fetchone()[0])
    return not _is_there


def forget() -> None:
    """Ask the database again next time (tests, a new database)."""
    global _is_there  # noqa: PLW0603 - as above
    _is_there = False


def fitted(text: str) -> str:
    """The statement as the schema can take it."""
    return _NAMED.sub("NULL", _FORCED.sub("", text)) if COLUMN in text and is_before_replays() else text
