"""What a server says of a damaged table."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, OperationalError, ProgrammingError

from projection.database.damage import damage


@pytest.mark.parametrize(
    ("error", "table"),
    [
        (OperationalError(1034, "Index for table '_System_ConnectorEvent' is corrupt; try to repair it"), "_System_ConnectorEvent"),
        (
            OperationalError(1034, "Incorrect key file for table './headrace/_System_ConnectorJob.MYI'; try to repair it"),
            "_System_ConnectorJob",
        ),
        (
            OperationalError(1194, "Table '_System_ConnectorJob' is marked as crashed and should be repaired"),
            "_System_ConnectorJob",
        ),
        (OperationalError(1812, "Tablespace is missing for table `headrace`.`_System_ConnectorJob`"), "_System_ConnectorJob"),
        (ProgrammingError(1932, "Table 'headrace._System_ConnectorJob' doesn't exist in engine"), "_System_ConnectorJob"),
        (OperationalError(1194, "Table 'their_own' is marked as crashed and should be repaired"), ""),
        (OperationalError(1712, "Index PRIMARY is corrupted"), ""),
        (DatabaseError(1030, 'Got error 194 "Tablespace is missing for a table" from storage engine InnoDB'), ""),
    ],
    ids=lambda value: str(value.args[0]) if isinstance(value, DatabaseError) else value,
)
def test_it_is_recognized_and_named(error: DatabaseError, table: str) -> None:
    found = damage(error)
    assert found is not None
    assert found.table == table
    assert found.sentence.startswith(f"Table {table} is damaged" if table else "A table is damaged")


@pytest.mark.parametrize(
    "error",
    [
        OperationalError(1030, 'Got error 28 "No space left on device" from storage engine InnoDB'),
        OperationalError(1114, "The table '_System_ConnectorJob' is full"),
        ProgrammingError(1146, "Table 'headrace._System_ConnectorJob' doesn't exist"),
        ValueError(1034),
        DatabaseError(),
    ],
)
def test_other_errors_are_none(error: Exception) -> None:
    assert damage(error) is None
