"""Databases as `ops_ui.start.prepare` leaves them, made by copying: preparing one costs seconds of a whole Django process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ops_ui.config.database_url import database
from ops_ui.start.database_server import connect


@dataclass(frozen=True)
class Prepared:
    """What makes every table of a prepared database, and every row in it."""

    tables: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]
    """INSERT statements with their rows."""


_prepared: dict[tuple[str, str], Prepared] = {}


def prepare(url: str, prepare_in_earnest: Callable[[], None], apps: str = "") -> None:
    """Make the empty database that `url` names a prepared one.

    `prepare_in_earnest()` runs the product's preparation on it; it is called for the first database of each server version and
    each HEADRACE_APPS (`apps`), and copied from then on, by this process.
    """
    with closing(connect(settings := database(url), settings["NAME"])) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SELECT VERSION()")
        key = (cursor.fetchone()[0], apps)
        if key in _prepared:
            _fill(cursor, _prepared[key])
            connection.commit()
        else:
            prepare_in_earnest()
            connection.rollback()  # from here on it sees what the preparation made
            _prepared[key] = _contents(cursor)


def _contents(cursor: Any) -> Prepared:
    cursor.execute("SHOW TABLES")
    tables, rows = [], []
    for (name,) in cursor.fetchall():
        cursor.execute(f"SHOW CREATE TABLE `{name}`")
        tables.append(cursor.fetchone()[1])
        cursor.execute(f"SELECT * FROM `{name}`")
        if found := cursor.fetchall():
            places = ", ".join(["%s"] * len(found[0]))
            rows.append((f"INSERT INTO `{name}` VALUES ({places})", found))
    return Prepared(tuple(tables), tuple(rows))


def _fill(cursor: Any, prepared: Prepared) -> None:
    cursor.execute("SET FOREIGN_KEY_CHECKS = 0")
    for statement in prepared.tables:
        cursor.execute(statement)
    for statement, rows in prepared.rows:
        cursor.executemany(statement, rows)
    cursor.execute("SET FOREIGN_KEY_CHECKS = 1")
