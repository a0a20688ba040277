"""A start that is killed between two statements of a migration, or before the migration is recorded, goes on at the next start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from tests.acceptance.service import own_database

pytestmark = pytest.mark.usefixtures("database")


class Killed(BaseException):
    pass


class Editor:
    """Counts the statements of a migration, and kills after one of them, or (0) after none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kill_after = 0
        self.count = 0
        true = connection.SchemaEditorClass.execute

        def execute(editor: Any, sql: Any, params: Any = ()) -> None:
            true(editor, sql, params)
            self.count += 1
            if self.count == self.kill_after:
                raise Killed

        monkeypatch.setattr(connection.SchemaEditorClass, "execute", execute)

    def apply(self, key: tuple[str, str], kill_after: int = 0) -> bool:
        """Whether the migration came to its end."""
        self.count, self.kill_after = 0, kill_after
        try:
            executor().migrate([key])
        except Killed:
            return False
        return True


@pytest.fixture
def fresh_database() -> Iterator[None]:
    """Django's default connection leads to an empty database."""
    name = connection.settings_dict["NAME"]
    with own_database(os.environ["HEADRACE_DATABASE_URL"]) as url:
        connection.close()
        connection.settings_dict["NAME"] = url.partition("?")[0].rpartition("/")[2]
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = name


def executor() -> MigrationExecutor:
    return MigrationExecutor(connection)


def schema() -> dict[str, str]:
    """Each table as the server would make it again."""
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SHOW CREATE TABLE {connection.ops.quote_name(table)}")
            found[table] = str(cursor.fetchone()[1]).partition(" AUTO_INCREMENT=")[0]
        return found


@pytest.fixture
def undisturbed(fresh_database: None) -> dict[str, str]:
    """The schema that a start makes which nobody kills."""
    executor().migrate(executor().loader.graph.leaf_nodes())
    found = schema()
    with connection.cursor() as cursor:
        cursor.execute("SET FOREIGN_KEY_CHECKS = 0")
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)}")
        cursor.execute("SET FOREIGN_KEY_CHECKS = 1")
    return found


def test_each_migration_goes_on_after_a_kill_behind_any_of_its_statements(
    undisturbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = Editor(monkeypatch)
    plan = [(one.app_label, one.name) for one, _ in executor().migration_plan(executor().loader.graph.leaf_nodes())]
    kills = 0
    for key in plan:
        kill_after = 1
        while not editor.apply(key, kill_after):
            kills += 1
            kill_after += 1
        MigrationRecorder(connection).record_unapplied(*key)  # killed when all was done
        assert editor.apply(key), key
    assert kills > len(plan)
    assert schema() == undisturbed


def test_a_statement_that_fails_for_another_reason_still_fails(fresh_database: None) -> None:
    with connection.schema_editor() as editor:
        editor.execute("CREATE TABLE first (id int primary key)")
        with pytest.raises(Exception, match="syntax"):
            editor.execute("CREATE TABEL second (id int)")
        with pytest.raises(Exception, match="doesn't exist"):
            editor.execute("ALTER TABLE second ADD COLUMN a int")
        with pytest.raises(Exception, match=r"[Dd]uplicate entry"):
            editor.execute("INSERT INTO first VALUES (1), (1)")
