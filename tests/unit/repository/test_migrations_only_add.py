"""Old and new processes share one schema while hosts are restarted one by one: a migration after the first adds, and takes nothing away."""

from __future__ import annotations

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models.fields import NOT_PROVIDED

OURS = ("projection", "connectors", "ops_ui")
ADDING = (
    migrations.CreateModel,
    migrations.AddField,
    migrations.AddIndex,
    migrations.AddConstraint,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
    migrations.RunPython,
)
UNRELEASED = frozenset({("ops_ui", "Preview"), ("ops_ui", "PreviewPart")})
"""Tables that no released version has: no process of one looks for them, so they may go. Empty once there is a release."""
UNFORCED = frozenset({"ix_event_settle"})
"""Indexes that no statement ever forced: old code is slower without them, and fails nowhere."""
LATER = sorted(key for key in MigrationLoader(None).disk_migrations if key[0] in OURS and not key[1].startswith("0001_"))


def is_left_out_safely(field: models.Field) -> bool:
    """Whether an INSERT of code that does not know the column succeeds."""
    return field.null or field.db_default is not NOT_PROVIDED


def told(operation: Operation) -> list[Operation]:
    """The operation, or what one ALTER of several parts says that it does: it must only add."""
    if isinstance(operation, migrations.SeparateDatabaseAndState) and not operation.database_operations:
        return []  # the choices of a model field, which no schema knows
    if not isinstance(operation, migrations.RunSQL):
        return [operation]
    assert isinstance(operation.sql, str)
    parts = [line.strip() for line in operation.sql.strip().splitlines()]
    assert parts[0].startswith("ALTER TABLE ")
    assert all(part.startswith(("ADD COLUMN ", "ADD INDEX ")) for part in parts[1:])
    assert len(operation.state_operations) == len(parts) - 1
    return list(operation.state_operations)


@pytest.mark.parametrize("key", LATER, ids=".".join)
def test_old_code_runs_on_the_schema_of_the_new(key: tuple[str, str]) -> None:
    for operation in (each for one in MigrationLoader(None).disk_migrations[key].operations for each in told(one)):
        if isinstance(operation, migrations.RemoveIndex):
            assert operation.name in UNFORCED, f"{key}: {operation.describe()}"
            continue
        if isinstance(operation, migrations.DeleteModel):
            assert (key[0], operation.name) in UNRELEASED, f"{key}: {operation.describe()}"
            continue
        assert isinstance(operation, ADDING), f"{key}: {operation.describe()}"
        if isinstance(operation, migrations.AddField):
            assert is_left_out_safely(operation.field), f"{operation.model_name}.{operation.name}: null=True or db_default="


def test_there_is_something_to_look_at() -> None:
    assert ("ops_ui", "0002_login_failures") in LATER


def test_a_column_that_old_code_would_have_to_know_is_seen() -> None:
    assert not is_left_out_safely(models.IntegerField(default=0))
    assert is_left_out_safely(models.IntegerField(db_default=0))
    assert is_left_out_safely(models.IntegerField(null=True))
