"""The statement catalogue: named SQL texts from the `.sql` files of a folder, one text, one name, one module that sends it; and how they
reach the server: parameters, chunks, packet-sized multi-row inserts, one value for each row.

A file holds statements that start with `-- name: <statement>`; the comment lines below a name are its contract (what changes,
which rows are locked and in what order, which index it must use, what 0 rows means).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections

from projection.database.bulk_insert import multi_row_texts
from projection.database.older_schema import fitted

T = TypeVar("T")
_VALUE: Final = re.compile(r"%\((\w+)\)s")
_NAME: Final = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
PROJECTION: Final = Path(__file__).parents[1]
NO_NAME: Final = ("",)
NO_ID: Final = (0,)
"""Stand for "none" in an IN list, which may not be empty: no lane key or name is empty, no id is 0."""
LONGEST_INSERT_BYTES: Final = 8 * 1024 * 1024
"""One INSERT text; further bounded by half of the server's max_allowed_packet (escaping can double a text)."""


@cache
def catalogue(folder: Path) -> dict[str, str]:
    """Every statement below `folder`, by name. Raises ValueError when a name is used twice."""
    texts: dict[str, str] = {}
    for path in sorted(folder.rglob("*.sql")):
        pieces = _NAME.split(path.read_text(encoding="utf-8"))[1:]
        for name, body in zip(pieces[::2], pieces[1::2], strict=True):
            if name in texts:
                raise ValueError(f"statement {name} is defined twice (again in {path.name})")
            texts[name] = "\n".join(line for line in body.strip().splitlines() if not line.startswith("--"))
    return texts


@cache
def by_place(text: str) -> tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    """A text with at least two named values as one with values by place, and what puts named values into that order.

    The driver escapes values by name in a loop of its own; where one statement is all the work, that shows.
    """
    return _VALUE.sub("%s", text), itemgetter(*_VALUE.findall(text))


def statement(name: str) -> str:
    """SQL text of a projection statement. Raises KeyError for an unknown name."""
    return catalogue(PROJECTION)[name]


class Sender:
    """Sends the named statements that lie in one folder, or below it.

    Text parts (`{scopes}`) and named values (`%(ids)s`) both come by keyword; positional values as a list. `using` is the alias of the
    connection.
    """

    def __init__(self, folder: Path, using: str = DEFAULT_DB_ALIAS) -> None:
        self._folder = folder
        self._using = using

    def fetch(self, name: str, values: Sequence[Any] | None = None, /, **parameters: Any) -> list[Any]:
        """Rows of a statement."""
        with connections[self._using].cursor() as cursor:
            cursor.execute(self._text(name, parameters), values if values is not None else parameters)
            return list(cursor.fetchall())

    def execute(self, name: str, values: Sequence[Any] | None = None, /, **parameters: Any) -> int:
        """Number of rows that a statement changed."""
        with connections[self._using].cursor() as cursor:
            cursor.execute(self._text(name, parameters), values if values is not None else parameters)
            return int(cursor.rowcount)

    def fetch_each(self, name: str, values: Sequence[tuple[Any, ...]], **parts: str) -> list[Any]:
        """Rows of a parenthesized look-up for each of the values, sent as one UNION ALL; none for no values."""
        if not values:
            return []
        with connections[self._using].cursor() as cursor:
            cursor.execute(" UNION ALL ".join([self._text(name, parts)] * len(values)), [value for one in values for value in one])
            return list(cursor.fetchall())

    def insert_rows(self, name: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """Insert all rows with as few texts as packets allow; number of rows."""
        if not rows:
            return 0
        longest = min(LONGEST_INSERT_BYTES, max_allowed_packet() // 2)
        own = connections[self._using]
        with own.cursor() as cursor:
            for text in multi_row_texts(self._text(name, {}), rows, own.connection.literal, longest):
                cursor.execute(text)
        return len(rows)

    def _text(self, name: str, parameters: dict[str, Any]) -> str:
        text = catalogue(self._folder)[name]
        for part, value in parameters.items():
            text = text.replace(f"{{{part}}}", str(value)) if f"{{{part}}}" in text else text
        return fitted(text)


_projection: Final = Sender(PROJECTION)
fetch, fetch_each, execute, insert_rows = _projection.fetch, _projection.fetch_each, _projection.execute, _projection.insert_rows
"""The projection's own statements."""


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`: what one statement, or one unit, takes."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def by_id(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[dict[str, str], list[Any]]:
    """One expression for each column that gives each row its own value: `CASE Id WHEN 7 THEN … END`; with its values, in order.

    `rows` are (id, value of the first column, …). A single-table UPDATE with them changes many rows differently in one statement that
    every server takes; joined to a derived table it would make MariaDB spool rows through a temporary table first (and 10.11 crashes
    where that cannot be made). Use the expressions in the order of the columns.
    """
    text = "CASE Id" + " WHEN %s THEN %s" * len(rows) + " END"
    values = [value for place, _ in enumerate(columns, start=1) for row in rows for value in (row[0], row[place])]
    return dict.fromkeys(columns, text), values


@cache
def max_allowed_packet() -> int:
    """The server's limit for one statement, bytes; asked once per process."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        return int(cursor.fetchone()[0])
