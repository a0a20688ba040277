"""An older installation's columns, for the time of a test: widened, narrowed, or compared by another collation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from tests.conftest import empty_tables


@contextmanager
def altered(table: str, **columns: str) -> Iterator[None]:
    """The columns of `table` have these definitions inside the block (`SourceId="VARCHAR(512) COLLATE …"`), then their own again."""
    own = {name: _definition(table, name) for name in columns}
    _alter(table, columns)
    try:
        yield
    finally:
        empty_tables()  # of rows that the columns' own definitions may not allow
        _alter(table, own)


def _definition(table: str, column: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COLUMN_TYPE, COLLATION_NAME, IS_NULLABLE FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s AND COLUMN_NAME = %s",
            [table, column],
        )
        kind, collation, nullable = cursor.fetchone()
    return f"{kind} {f'COLLATE {collation}' if collation else ''} {'NULL' if nullable == 'YES' else 'NOT NULL'}"


def _alter(table: str, columns: dict[str, str]) -> None:
    changes = ", ".join(f"MODIFY `{name}` {definition}" for name, definition in columns.items())
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE `{table}` {changes}")
