"""Sources: the records of providers, by their newest event, and the history of each one over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponseBase

from connectors.models import Record
from ops_ui.console.base import labels, navigation
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.sources import reads as source_reads
from ops_ui.console.sources import records
from ops_ui.console.sources import timeline as source_timeline
from ops_ui.console.sources.filter import SourceFilter
from ops_ui.console.sources.reads import History, Source
from ops_ui.console.sources.table import SourceTable
from projection.database import clock
from projection.inspection.why import why
from projection.inspection.why_decision import Why
from projection.models import Event
from projection.states import NONTERMINAL


@page(navigation.SOURCES)
def listing(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Sources",
            rows=Event.objects.none(),
            filters=SourceFilter,
            table=_table,
            empty="No sources yet. A source appears with its first event.",
            next_page=navigation.RECEIPTS,
            read=lambda filters, cursor, size: source_reads.sources(filters.which(), cursor, size),
        ),
    )


def _table(found: list[Event]) -> SourceTable:
    return SourceTable(found, work=source_reads.work_by_event(found), records=source_reads.records_by_source(found))


@page(navigation.SOURCES)
def detail(request: HttpRequest) -> HttpResponseBase:
    """The newest history of the source that the names in the address tell; 404 where nothing of it is kept. Some 25 queries."""
    namespace, source_type, source_id = (request.GET.get(name, "") for name in ("namespace", "type", "id"))
    account = request.GET.get("account")
    if account is None:
        account = source_reads.newest_account(namespace, source_type, source_id)
    source = Source(namespace, source_type, source_id, account)
    history = source_reads.history(source)
    live = _live_records(request, source)
    if not history.events and not live:
        raise Http404(f"no event or record of the source {source} is retained")
    sees_work = request.user.has_perm(navigation.GENERATIONS.permission)
    if not sees_work:
        history = History(history.events, history.has_more, {}, [], [])
    context: dict[str, Any] = {
        "source": source,
        "history": history,
        "timeline": source_timeline.timeline(history, clock.now()),
        "events": [(event, history.owners.get(event.id)) for event in reversed(history.events)],
        "why": _why(history),
        "routes": _route_names(history),
        "live": live,
        "sees_work": sees_work,
    }
    return show(request, "console/sources/source.html", str(source), **context)


@dataclass(frozen=True, slots=True)
class LiveRecord:
    """A live record with its properties."""

    record: Record
    properties: list[records.Property]


def _live_records(request: HttpRequest, source: Source) -> list[LiveRecord]:
    if not request.user.has_perm(navigation.RECORDS.permission):
        return []
    return [LiveRecord(row, records.properties(row)) for row in source_reads.records(source)]


def _route_names(history: History) -> dict[int, str]:
    ids = {one.item.route_id for one in history.generations}
    return {row_id: f"#{row_id}" for row_id in ids} | labels.routes(ids)


def _why(history: History) -> tuple[Why, str] | None:
    """Why the oldest live work of the source does not run, and its WorkId."""
    waiting = [one.item for one in history.generations if one.item.state in NONTERMINAL]
    return (why(waiting[-1]), waiting[-1].work_id) if waiting else None


URLS: Final[Urls] = (
    ("sources/", listing, "sources"),
    ("sources/one/", detail, "source"),
)
