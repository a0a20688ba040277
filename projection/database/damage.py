"""Damaged tables: what an error says of one, and a look at each of ours.

A table is damaged where a server was killed while its disk was full, a disk failed, or a file was lost. The server then refuses what
touches it, and answers everything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError, connection

from projection.database.transactions import error_code
from projection.safe_text import error_text

DAMAGE_CODES: Final = frozenset(
    {
        1034,  # MariaDB: the index of a table is corrupt
        1194,  # marked as crashed
        1195,  # marked as crashed, and the last repair failed
        1712,  # MySQL: an index is corrupted
        1812,  # its file is missing
        1877,  # MySQL: the table is corrupted
        1932,  # does not exist in the engine
    }
)
OF_THE_ENGINE_CODE: Final = 1030
ENGINE_NUMBERS: Final = re.compile(r"\berror (?:126|127|144|145|180|194)\b")
"""What 1030 names: crashed, needs repair, corrupt index, file missing."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A table that cannot be read, and the server's error."""

    table: str
    error: DatabaseError

    @property
    def sentence(self) -> str:
        named = f"Table {self.table}" if self.table else "A table"
        return (
            f"{named} is damaged, and what needs it fails: {error_text(self.error)}. Run CHECK TABLE on it; "
            'docs/deployment.md, "When the disk of the database is full", says what to do.'
        )


def damage(error: BaseException) -> Damage | None:
    """What an error tells of a damaged table; None: it tells of something else. `table` is empty where the server names none of ours."""
    if not isinstance(error, DatabaseError):
        return None
    code = error_code(error)
    if code not in DAMAGE_CODES and not (code == OF_THE_ENGINE_CODE and ENGINE_NUMBERS.search(str(error))):
        return None
    text = str(error)
    return Damage(max((table for table in our_tables() if table in text), key=len, default=""), error)


def our_tables() -> list[str]:
    """Those of the installed models, in order."""
    return sorted(connection.introspection.django_table_names(only_existing=False, include_views=False))


def damaged_tables() -> list[Damage]:
    """Our tables of which the server cannot read a first row. One statement while all can be read. Raises every other error."""
    tables = our_tables()
    try:
        _read(tables)
    except DatabaseError as error:
        if damage(error) is None:
            raise
    else:
        return []
    return [found for table in tables if (found := _damage_of(table)) is not None]


def _damage_of(table: str) -> Damage | None:
    try:
        _read([table])
    except DatabaseError as error:
        if damage(error) is None:
            raise
        return Damage(table, error)
    return None


def _read(tables: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"(SELECT 1 FROM {connection.ops.quote_name(table)} LIMIT 1)" for table in tables))
        cursor.fetchall()
