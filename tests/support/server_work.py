"""What statements cost the server, in rows: counts, never times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import MySQLdb
from django.db import connection

from projection.database import older_schema

READ_COUNTERS = tuple(f"Handler_read_{kind}" for kind in ("first", "key", "last", "next", "prev", "rnd", "rnd_next"))


@dataclass
class Work:
    """`rows_read` and the counters behind it are known once the block has ended."""

    counters: Counter[str] = field(default_factory=Counter)

    @property
    def rows_read(self) -> int:
        """Index look-ups and steps and rows of scans."""
        return self.counters.total()

    @property
    def full_scan_rows(self) -> int:
        """Rows read in table order, temporary tables included."""
        return self.counters["Handler_read_rnd_next"]


@contextmanager
def server_work() -> Iterator[Work]:
    """Count the rows that this connection's statements read inside the block."""
    work = Work()
    older_schema.is_before_replays()  # a process asks this once, whichever test comes first
    before = _session_counters()
    noise = _session_counters()
    yield work
    after = _session_counters()
    own = {name: noise[name] - before[name] for name in READ_COUNTERS}  # asking costs as much each time
    work.counters.update({name: after[name] - noise[name] - own[name] for name in READ_COUNTERS})


def _session_counters() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return {name: int(value) for name, value in cursor.fetchall()}


@contextmanager
def texts_recorded() -> Iterator[list[str]]:
    """The texts that this connection sends inside the block, with their values filled in."""
    older_schema.is_before_replays()  # a process asks this once, whichever test comes first
    connection.ensure_connection()
    raw = connection.connection
    original = raw.query
    texts: list[str] = []

    def query(text: bytes) -> Any:
        texts.append(text.decode("utf-8", "replace"))
        return original(text)

    raw.query = query
    try:
        yield texts
    finally:
        raw.query = original


def plan_of(text: str) -> list[dict[str, Any]]:
    """The table accesses of a statement's plan, as the server's EXPLAIN tells them: `table`, `type`, `key`, `extra`."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {'' if connection.mysql_is_mariadb else 'FORMAT=TRADITIONAL '}{text}")
        names = [column[0].lower() for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def refresh_statistics(*tables: str) -> None:
    """The optimizer knows how many rows there are."""
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ANALYZE TABLE `{table}`")
            cursor.fetchall()


def locked_ids(table: str, ids: list[int]) -> list[int]:
    """Those of the rows that a second connection cannot lock now, tried row by row."""
    other = MySQLdb.connect(**connection.get_connection_params())
    found = []
    try:
        cursor = other.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        for one in ids:
            cursor.execute(f"SELECT Id FROM `{table}` WHERE Id = %s FOR UPDATE SKIP LOCKED", [one])
            if not cursor.fetchall():
                found.append(one)
            other.rollback()
    finally:
        other.close()
    return found


def full_scans(texts: Iterable[str]) -> list[str]:
    """Those of the texts whose plan reads a stored table from end to end."""
    return [text for text in texts if any(_is_full_scan(access) for access in plan_of(text))]


def _is_full_scan(access: dict[str, Any]) -> bool:
    return access["type"] == "ALL" and not str(access["table"]).startswith(("<", "s", "d"))


@contextmanager
def believed_statistics(tables: Iterable[str], *, distinct: int, rows: int) -> Iterator[None]:
    """The optimizer believes in so many rows, and so many distinct values of each index, whatever is there."""
    names = tuple(tables)
    with connection.cursor() as cursor:
        try:
            for table in names:
                cursor.execute(f"ALTER TABLE `{table}` STATS_AUTO_RECALC = 0")
                where = "WHERE database_name = DATABASE() AND table_name = %s"
                cursor.execute(
                    f"UPDATE mysql.innodb_index_stats SET stat_value = %s {where} AND stat_name LIKE 'n_diff%%'", [distinct, table]
                )
                cursor.execute(f"UPDATE mysql.innodb_table_stats SET n_rows = %s {where}", [rows, table])
                cursor.execute(f"FLUSH TABLE `{table}`")
            yield
        finally:
            for table in names:
                cursor.execute(f"ALTER TABLE `{table}` STATS_AUTO_RECALC = DEFAULT")
            refresh_statistics(*names)
