"""Thousands of rows made, or changed, inside the server: copies of one row with some columns computed."""

from __future__ import annotations

from django.db import connection, models

_DIGIT = "(SELECT 0 AS d" + "".join(f" UNION ALL SELECT {digit}" for digit in range(1, 10)) + ")"
A_STATEMENT = 50_000


def _numbers(count: int) -> str:
    """SQL of a table with the column n: 0 to at least `count` − 1."""
    places = len(str(max(count - 1, 1)))
    terms = " + ".join(f"{10**place} * p{place}.d" for place in range(places))
    return f"(SELECT {terms} AS n FROM {' CROSS JOIN '.join(f'{_DIGIT} p{place}' for place in range(places))}) numbers"


def copy_rows(row: models.Model, count: int, **columns: str) -> None:
    """Insert `count` copies of `row`, in the order of `n` (0 to count − 1); `columns` are SQL expressions of `n`, e.g.
    WorkId="CONCAT('evt:', n)". Their ids are consecutive: a server leaves gaps between large statements.
    """
    table = row._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT MAX(Id) FROM `{table}`")
        columns["Id"] = f"{cursor.fetchone()[0] + 1} + n"
    names = [str(field.column) for field in row._meta.concrete_fields]
    chosen = ", ".join(f"({columns[name]})" if name in columns else f"t.`{name}`" for name in names)
    assert not columns.keys() - set(names), columns.keys() - set(names)
    quoted = ", ".join(f"`{name}`" for name in names)
    for start in range(0, count, A_STATEMENT):
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO `{table}` ({quoted}) SELECT {chosen} FROM `{table}` t CROSS JOIN {_numbers(count)} "
                f"WHERE t.Id = {row.pk} AND n >= {start} AND n < {min(count, start + A_STATEMENT)} ORDER BY n"
            )


def hashed(prefix: str) -> str:
    """SQL of a 64-digit key that differs for each n."""
    return f"SHA2(CONCAT('{prefix}', n), 256)"


def make_old(days: int = 120) -> None:
    """Everything that came in or ended did so that much earlier."""
    with connection.cursor() as cursor:
        for table, columns in (
            ("WorkItem", ("TerminalAt", "EventCreatedDate")),
            ("Receipt", ("ReceivedAt",)),
            ("Event", ("CreatedDate",)),
        ):
            changes = ", ".join(f"{column} = {column} - INTERVAL {days} DAY" for column in columns)
            cursor.execute(f"UPDATE `_System_Connector{table}` SET {changes}")
