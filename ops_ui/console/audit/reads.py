"""Reads of the audit trail: one index gives the order, whatever is asked for, and each page looks at a bounded part of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

import django_filters
from django.db.models import QuerySet
from django.db.models.functions import Lower

from connectors.models import AuditEntry
from ops_ui.console.lists import keyset
from ops_ui.console.lists.filters import ListFilter, MomentFilter, exact_filter, key_filter
from ops_ui.console.lists.keyset import Cursor, Order, Page
from projection.database.catalogue import Sender, chunks
from projection.database.clock import from_db, to_db

_sql: Final = Sender(Path(__file__).parent)
BY_TIME: Final = Order("at")
NAMES: Final = ("target", "actor", "action")
"""Fields that have an index of their own, the most selective first."""
ROWS_AT_ONCE: Final = 500
"""Ids of one statement that looks at rows: a search stops soon after its page is full, and MariaDB makes a table of 1,000 and more."""
EVER: Final = (datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
"""Before and after any time that a server keeps."""


class AuditFilter(ListFilter):
    """What the list of entries is asked for; read by `find`."""

    actor = exact_filter("Actor", "actor", method="kept")
    action = key_filter("Action", "action", method="kept")
    target = exact_filter("Target", "target", method="kept")
    reason = django_filters.CharFilter(label="Reason contains", method="kept")
    since = MomentFilter(label="Since", method="kept")
    until = MomentFilter(label="Before", method="kept")

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def kept(self, rows: QuerySet[Any], _name: str, _value: str) -> QuerySet[Any]:
        """All conditions are made at once, in `find`."""
        return rows

    def order(self) -> Order:
        return BY_TIME


@dataclass(frozen=True, slots=True)
class _Place:
    """Of an entry in the order of time."""

    id: int
    at: datetime

    def cursor(self, side: Literal["after", "before"]) -> Cursor:
        return Cursor(side, self.id, self.at)


def find(filters: AuditFilter, order: Order, cursor: Cursor | None, size: int = keyset.PAGE_SIZE) -> Page:
    """The page of `filters` at `cursor`, by time. One field alone, or a time, is served by an index: two statements. With more than one,
    or a text, it looks at no more than the next `keyset.SEARCHED` entries of the most selective one.
    """
    given = filters.given()
    served = next((name for name in NAMES if name in given), None)
    rest: dict[str, Any] = {name: given[name] for name in (*NAMES, "reason") if name in given and name != served}
    cursor = None if cursor is None or cursor.value is None else cursor
    backwards = cursor is not None and cursor.side == "before"
    window = keyset.SEARCHED if rest else size
    places = _places(served, given, cursor, window + 1, descending=order.descending != backwards)
    looked_at = places[:window] if rest else places
    found = _rows(looked_at, rest, size + 1)
    edge = looked_at[-1] if rest and len(places) > window and len(found) <= size else None
    page = _page(found, size, cursor, edge)
    return replace(page, searched_at=edge.at) if edge and not backwards else page


def _page(found: list[AuditEntry], size: int, cursor: Cursor | None, edge: _Place | None) -> Page:
    """The rows as a page with its neighbours; a search that came to `edge` goes on there."""
    more, found = len(found) > size, found[:size]
    places = [_Place(row.id, row.at) for row in found]
    beyond = places[-1] if more else edge
    if cursor is not None and cursor.side == "before":
        found.reverse()
        behind = places[0].cursor("after") if places else None
        return Page(found, previous=beyond.cursor("before") if beyond else None, next=behind)
    behind = places[0].cursor("before") if cursor is not None and places else None
    return Page(found, previous=behind, next=beyond.cursor("after") if beyond else None)


def _places(served: str | None, given: dict[str, Any], cursor: Cursor | None, limit: int, *, descending: bool) -> list[_Place]:
    """The next places behind `cursor`, of the field `served` (None: of all). One statement of an index alone."""
    since, until = max(given.get("since", EVER[0]), EVER[0]), max(given.get("until", EVER[1]), EVER[0]) - timedelta(microseconds=1)
    at, row_id = (EVER[1], 0) if descending else (EVER[0], 0)
    if cursor is not None and cursor.value is not None:
        at, row_id = cursor.value, cursor.id
        since, until = (since, min(until, at)) if descending else (max(since, at), until)
    rows = _sql.fetch(
        "read_audit_places",
        index=f"ix_audit_{served or 'at'}",
        holds=f"a.{served.capitalize()} = %(value)s" if served else "TRUE",
        beyond="<" if descending else ">",
        way="DESC" if descending else "ASC",
        value=given.get(served or ""),
        since=to_db(since),
        until=to_db(until),
        at=to_db(at),
        id=row_id,
        limit=limit,
    )
    return [_Place(row_id, from_db(at)) for row_id, at in rows]


def _rows(places: list[_Place], rest: dict[str, Any], enough: int) -> list[AuditEntry]:
    """The first entries at these places, in their order, for which `rest` holds; at most `enough`."""
    rows = AuditEntry.objects.all()
    if "reason" in rest:
        rows = rows.alias(folded=Lower("reason")).filter(folded__contains=str(rest["reason"]).lower())
    rows = rows.filter(**{name: value for name, value in rest.items() if name != "reason"})
    found: list[AuditEntry] = []
    for some in chunks(places, ROWS_AT_ONCE):
        by_id = rows.in_bulk([place.id for place in some])
        found += [by_id[place.id] for place in some if place.id in by_id]
        if len(found) >= enough:
            return found[:enough]
    return found
