"""Pages of large tables by position, never by OFFSET, never counted.

A page is the next rows after a cursor in a total order (a column, then the id), so rows with equal times are shown once each
however the table grows meanwhile. A filter that no index serves reads a bounded window of ids and says how far it looked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Q, QuerySet

PAGE_SIZE: Final = 50
WINDOW: Final = 50_000
"""Ids that one page of an unindexed filter reads at most: a clustered range, some ten milliseconds."""
SEARCHED: Final = 10_000
"""Rows in an index's order that one page of an unindexed filter looks at, at most: each costs a look-up of its row."""
SPARE: Final = 5


@dataclass(frozen=True, slots=True)
class Order:
    """A total order: by `column`, then by id. `column` is indexed together with what the page filters by.

    `index` is forced where it is named: MariaDB otherwise takes only its first column for a page deep inside, and reads all rows before it.
    """

    column: str = "id"
    descending: bool = True
    index: str = ""


NEWEST_FIRST: Final = Order()
OLDEST_FIRST: Final = Order(descending=False)


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position between rows: the page lies `after` or `before` the row (`value`, `id`) in the page's order."""

    side: Literal["after", "before"]
    id: int
    value: datetime | None = None

    def __str__(self) -> str:
        value = "" if self.value is None else self.value.astimezone(UTC).strftime("%Y%m%dT%H%M%S.%f")
        return f"{self.side}-{self.id}" + (f"-{value}" if value else "")

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The cursor of a URL; None for an empty or damaged one (the first page is shown then)."""
        side, _, rest = text.partition("-")
        number, _, value = rest.partition("-")
        try:
            at = datetime.strptime(value, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC) if value else None
            row_id = int(number)
        except ValueError:
            return None
        if side not in ("after", "before") or not 0 <= row_id < 2**63:
            return None
        return cls("before" if side == "before" else "after", row_id, at)


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of one page and the cursors of its neighbours (None = there is none).

    `searched_to` is the id, `searched_at` the time, at which a search stopped before it found a full page; `next` continues from there.
    """

    rows: list[Any]
    previous: Cursor | None = None
    next: Cursor | None = None
    searched_to: int | None = None
    searched_at: datetime | None = None


def page(rows: QuerySet[Any], order: Order, cursor: Cursor | None, size: int = PAGE_SIZE) -> Page:
    """The page of `rows` at `cursor`: one statement of at most `size` + 1 rows."""
    cursor = _of_order(cursor, order)
    backwards = cursor is not None and cursor.side == "before"
    descending = order.descending != backwards
    wanted = _beyond(rows, order, cursor, descending).order_by(*_columns(order, descending))[: size + 1]
    found = by_index(wanted, order.index)
    more, found = len(found) > size, found[:size]
    if backwards:
        found.reverse()
    if not found:
        return Page([])
    has_previous, has_next = (more, True) if backwards else (cursor is not None, more)
    return Page(
        found,
        previous=_at("before", found[0], order) if has_previous else None,
        next=_at("after", found[-1], order) if has_next else None,
    )


def by_index(rows: QuerySet[Any], index: str) -> list[Any]:
    """The rows, read by this index of their table (empty: the server chooses)."""
    forced = _forced(rows, index)
    return list(rows.model._default_manager.raw(*forced) if forced else rows)


def ids_by_index(rows: QuerySet[Any], index: str) -> list[int]:
    """As `by_index`, the ids alone."""
    forced = _forced(rows.values_list("id"), index)
    if forced is None:
        return list(rows.values_list("id", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(*forced)
        return [row[0] for row in cursor.fetchall()]


def count_by_index(rows: QuerySet[Any], index: str) -> int:
    """As `by_index`, how many. A slice bounds what is read."""
    forced = _forced(rows.values_list("id"), index)
    if forced is None:
        return rows.count()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM ({forced[0]}) AS bounded", forced[1])
        return int(cursor.fetchone()[0])


def _forced(rows: QuerySet[Any], index: str) -> tuple[str, tuple[Any, ...]] | None:
    """The text that reads by the index, with its values; None where nothing is to be forced, or nothing can be found."""
    if not index:
        return None
    try:
        text, values = rows.query.sql_with_params()
    except EmptyResultSet:
        return None
    table = f"FROM `{rows.model._meta.db_table}`"
    return text.replace(table, f"{table} FORCE INDEX ({index})", 1), values


def windowed(
    rows: QuerySet[Any], cursor: Cursor | None, size: int = PAGE_SIZE, window: int = WINDOW, *, descending: bool = True
) -> Page:
    """The page of a filter that no index serves: newest (or oldest) first, reading at most `window` ids. Two or three statements.

    Goes one way only; the browser's own "back" leads to the pages before.
    """
    everything = rows.model._default_manager.order_by()
    newest, oldest = _edge(everything, "-id"), _edge(everything, "id")
    if newest is None or oldest is None:
        return Page([])
    at = cursor.id if cursor is not None and cursor.value is None else None
    if descending:
        first = newest if at is None else at - 1
        last = first - window + 1
        found = list(rows.filter(id__lte=first, id__gte=last).order_by("-id")[: size + 1])
        is_over = last <= oldest
    else:
        first = oldest if at is None else at + 1
        last = first + window - 1
        found = list(rows.filter(id__gte=first, id__lte=last).order_by("id")[: size + 1])
        is_over = last >= newest
    if len(found) > size:
        return Page(found[:size], next=Cursor("after", found[size - 1].id))
    return Page(found) if is_over else Page(found, next=Cursor("after", last), searched_to=last)


def edge_of(among: QuerySet[Any], order: Order, cursor: Cursor | None, window: int = SEARCHED) -> Cursor | None:
    """Where a search behind (or before) `cursor` stops: the last of the next `window` rows of `among`, which an index gives in this
    order. None: it comes to the end. One statement of the index alone, and one row.
    """
    cursor = _of_order(cursor, order)
    backwards = cursor is not None and cursor.side == "before"
    descending = order.descending != backwards
    rows = _beyond(among, order, cursor, descending).order_by(*_columns(order, descending))
    looked_at = ids_by_index(rows[: window + 1], order.index)
    if len(looked_at) <= window:
        return None
    # Some of the last ones: a row may have been pruned since.
    last = among.filter(id__in=looked_at[:window][-SPARE:]).only("id", order.column).order_by(*_columns(order, descending)).last()
    return None if last is None else replace(_at("after", last, order), side="before" if backwards else "after")


def searched(rows: QuerySet[Any], order: Order, cursor: Cursor | None, edge: Cursor | None, size: int = PAGE_SIZE) -> Page:
    """The page of a filter that no index serves, in an index's order and both ways, looking no further than `edge` (`edge_of`)."""
    if edge is None:
        return page(rows, order, cursor, size)
    found = page(within(rows, order, edge), order, cursor, size)
    if edge.side == "before":
        return found if found.previous else replace(found, previous=edge)
    return found if found.next else replace(found, next=edge, searched_at=edge.value)


def within(rows: QuerySet[Any], order: Order, edge: Cursor | None) -> QuerySet[Any]:
    """The rows up to `edge`, the row there included."""
    if edge is None:
        return rows
    back = order.descending == (edge.side == "before")  # from the edge towards where the search began
    return _beyond(rows, order, replace(edge, id=edge.id + 1 if back else edge.id - 1), back)


def _of_order(cursor: Cursor | None, order: Order) -> Cursor | None:
    """None for one of another order: somebody changed the filter in the URL."""
    return None if cursor is not None and (cursor.value is None) != (order.column == "id") else cursor


def _edge(everything: QuerySet[Any], order: str) -> int | None:
    row_id: int | None = everything.order_by(order).values_list("id", flat=True).first()
    return row_id


def _columns(order: Order, descending: bool) -> list[str]:
    sign = "-" if descending else ""
    return [f"{sign}id"] if order.column == "id" else [f"{sign}{order.column}", f"{sign}id"]


def _beyond(rows: QuerySet[Any], order: Order, cursor: Cursor | None, descending: bool) -> QuerySet[Any]:
    if cursor is None:
        return rows
    way = "lt" if descending else "gt"
    if order.column == "id":
        return rows.filter(**{f"id__{way}": cursor.id})
    # The first condition alone is a range of the index; the second cuts the rows with an equal value.
    return rows.filter(Q(**{f"{order.column}__{way}e": cursor.value})).filter(
        Q(**{f"{order.column}__{way}": cursor.value}) | Q(**{f"id__{way}": cursor.id})
    )


def _at(side: Literal["after", "before"], row: Any, order: Order) -> Cursor:
    return Cursor(side, row.id, None if order.column == "id" else getattr(row, order.column))
