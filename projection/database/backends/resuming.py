"""Migrations that a killed start left half done are resumed: what a statement was to make, and is there, is left as it is.

These servers commit each DDL statement by itself, and Django records a migration when all of its statements have run. After a kill in
between, the first of them would fail at every later start. Each statement is atomic, so what is there is whole.
"""

from __future__ import annotations

import re
from typing import Any, Final

from django.db import DatabaseError
from django.db.backends.mysql.schema import DatabaseSchemaEditor

from projection.database.transactions import error_code
from projection.logs import log_event

DONE_CODES: Final = frozenset(
    {
        1050,  # CREATE TABLE: it exists
        1051,  # DROP TABLE: it is gone
        1060,  # ADD COLUMN: it exists
        1061,  # CREATE INDEX, ADD CONSTRAINT UNIQUE: it exists
        1091,  # DROP COLUMN, DROP INDEX: it is gone
        1826,  # ADD CONSTRAINT FOREIGN KEY: it exists
    }
)
CANNOT_CREATE: Final = 1005
"""MariaDB's code for a foreign key that exists (and for other faults)."""
DUPLICATE_KEY: Final = re.compile(r"errno: 121\b")
UNKNOWN_COLUMN: Final = 1054
ALTERS_COLUMN: Final = re.compile(r"\s*ALTER TABLE \S+ (MODIFY|CHANGE|ALTER COLUMN) ", re.IGNORECASE)
"""Of a column that a later statement of the same migration has removed, or renamed, already."""


def is_done(sql: str, error: DatabaseError) -> bool:
    """Whether the statement failed because all that it was to do has been done."""
    code = error_code(error)
    if code == CANNOT_CREATE:
        return DUPLICATE_KEY.search(str(error)) is not None
    return code in DONE_CODES or (code == UNKNOWN_COLUMN and ALTERS_COLUMN.match(sql) is not None)


class ResumingEditor(DatabaseSchemaEditor):
    """Django's for MySQL and MariaDB; goes in front of another server's."""

    def execute(self, sql: Any, params: Any = ()) -> None:
        """As Django's. What is done already is logged and passed over."""
        try:
            super().execute(sql, params)
        except DatabaseError as error:
            if self.collect_sql or not is_done(str(sql), error):
                raise
            reason = f"a start was killed before; this is done already: {sql!s:.200}"
            log_event("migrate", level="warning", error_code=error_code(error), reason=reason)
