"""Reads of dead letters for the console: when which error killed work, a page of a filter, and how many are open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from django.db.models import QuerySet

from connectors.models import Pack, Route
from connectors.operations.work_filters import WorkFilter
from ops_ui.console.dead_letters import heat
from ops_ui.console.dead_letters.filter import BY_DEATH, Chosen, DeadLetterFilter, select
from ops_ui.console.lists import keyset
from ops_ui.console.lists.keyset import Cursor, Page
from ops_ui.monitoring.counts import Count
from projection.database.catalogue import Sender
from projection.database.clock import to_db
from projection.models import WorkItem

_sql: Final = Sender(Path(__file__).parent)
MOST_DEATHS: Final = 50_000
"""Deaths that the heat table looks at: some 100 ms. With more of them in its period it says so."""
MOST_CELLS: Final = 2_000
NEWEST: Final = 500
"""Newest open dead letters that are grouped by error; more would not change which errors are news."""


@dataclass(frozen=True, slots=True)
class Found:
    """A page of dead letters. `open` counts the matching ones that a bulk would take, as far as one page searches; None: not asked."""

    page: Page
    open: Count | None


def find(filters: DeadLetterFilter, cursor: Cursor | None, size: int = keyset.PAGE_SIZE) -> Found:
    """The page at `cursor`; the count with the first page only. At most four statements beside those of the filter's names."""
    chosen = filters.select()
    edge = keyset.edge_of(chosen.among, chosen.order, cursor)
    page = keyset.searched(chosen.rows, chosen.order, cursor, None if chosen.is_indexed else edge, size)
    asked = cursor is None and filters.bulk_filter() is not None
    return Found(page, open_within(chosen, edge) if asked else None)


def open_within(chosen: Chosen, edge: Cursor | None) -> Count:
    """Open dead letters of a filter, down to `edge`; one statement that looks at no more."""
    rows = keyset.within(chosen.open_rows, chosen.order, edge).order_by()[: keyset.SEARCHED]
    return Count(keyset.count_by_index(rows, chosen.order.index), capped=edge is not None)


@dataclass(frozen=True, slots=True)
class Open:
    """Dead letters that are neither replayed nor discarded, among the newest 10,000 dead items: how many, and the newest 500 of them."""

    count: Count
    newest: QuerySet[WorkItem]


def open_now() -> Open:
    """Four statements at most, and one when the newest are read."""
    chosen = select(WorkFilter())
    edge = keyset.edge_of(chosen.among, BY_DEATH, None)
    newest = keyset.within(chosen.open_rows, BY_DEATH, edge).order_by("-terminal_at", "-id")[:NEWEST]
    ids = keyset.ids_by_index(newest, BY_DEATH.index)
    return Open(open_within(chosen, edge), WorkItem.objects.filter(id__in=ids).order_by("-terminal_at", "-id"))


def deaths(name: str, now: datetime, *, route: str = "", pack: str = "") -> tuple[heat.Heat | None, bool]:
    """The heat table of a period (`hours` or `days`) and whether it had to leave out older deaths. Two to four statements."""
    within = heat.period(name, now)
    routes = tuple(Route.objects.filter(route_key=route).values_list("id", flat=True)) if route else ()
    packs = tuple(Pack.objects.filter(name=pack).values_list("id", flat=True)) if pack else ()
    rows = _sql.fetch(
        "read_deaths_by_error",
        since=to_db(within.since),
        width=int(within.width.total_seconds()),
        most=MOST_DEATHS,
        cells=MOST_CELLS,
        all_routes=not route,
        routes=routes or (0,),
        all_packs=not pack,
        packs=packs or (0,),
    )
    found = heat.parsed(rows, within)
    kept = {name: value for name, value in (("route", route), ("pack", pack)) if value}
    return heat.heat(within, found, _errors(heat.top(found)), kept), sum(one.count for one in found) >= MOST_DEATHS


def _errors(newest: Mapping[str, int]) -> dict[str, str]:
    """Fingerprint → the first line of its newest error, in the given order. One query."""
    texts: dict[int, str | None] = dict(WorkItem.objects.filter(id__in=newest.values()).values_list("id", "last_error"))
    return {fingerprint: _line(texts.get(row_id)) for fingerprint, row_id in newest.items()}


def _line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0] or "no error recorded"
