"""Every page of the console with every choice of its filters, in each order, at its beginning and deep inside, and what each one cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.db.models import Max, Min, Model, QuerySet
from django.test import Client

from connectors.models import AuditEntry, Endpoint, Pack, Receipt, Record, Route, UnverifiedDelivery
from connectors.operations import bulk_jobs
from connectors.operations.work_filters import WorkFilter
from ops_ui.console.lists.cells import ConsoleTable
from ops_ui.console.lists.filters import MomentField
from ops_ui.console.lists.keyset import Cursor
from projection.bulk.job_rows import ItemState, JobKind
from projection.inspection.lane_reads import Lane
from projection.job_models import Job
from projection.models import Event, LaneHold, WorkItem
from projection.states import NONTERMINAL, State
from tests.support.console_world import LISTS
from tests.support.server_work import plan_of, server_work, texts_recorded

BIG: Final = ("Receipt", "Event", "WorkItem", "WorkFailure", "Record", "JobItem", "Audit", "Unverified")
"""Tables that grow with what comes in. There is a hold for each lane that a person stopped, so a plan may well read all of them."""
_BIG_TABLE: Final = re.compile(rf"`_System_Connector(?:{'|'.join(BIG)})`", re.IGNORECASE)
SLOW_MS: Final = 500
MORE_TRIES: Final = 7
NOBODY: Final = "nobody"
"""A value that no row has: a search for it goes as far as it may."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One page and what it cost. `ms`: the best of several, 0 where it was not timed. `searches`: no index serves its filter."""

    page: str
    url: str
    status: int
    statements: int
    rows_read: int
    scans: tuple[str, ...]
    ms: float
    searches: bool


def visit(client: Client, page: str, url: str, *, timed: bool) -> tuple[Visit, Any]:
    """The page's cost and its context."""
    with server_work() as work, texts_recorded() as texts:
        response: Any = client.get(url)
    scans = tuple(text for text in texts if text.lstrip().startswith(("SELECT", "(SELECT")) and _scans_a_big_table(text))
    best = _best_of(client, url) if timed else 0.0
    searches = bool(getattr(_of(response.context, "filter"), "is_windowed", False))
    return Visit(page, url, response.status_code, len(texts), work.rows_read, scans, best, searches), response.context


def _best_of(client: Client, url: str) -> float:
    """The best of three, in milliseconds; more often while it is slow, because other work on the machine is not the page's."""
    best = min(_milliseconds(client, url) for _ in range(3))
    for _ in range(MORE_TRIES):
        if best < SLOW_MS:
            break
        best = min(best, _milliseconds(client, url))
    return best


def _milliseconds(client: Client, url: str) -> float:
    started = perf_counter()
    client.get(url)
    return (perf_counter() - started) * 1000


def _scans_a_big_table(text: str) -> bool:
    """Whether its plan reads one of the large tables in table order without a range. Aliases are told apart by the text."""
    if not _BIG_TABLE.search(text):
        return False
    return any(access["type"] == "ALL" and _is_big(str(access["table"]), text) for access in plan_of(text))


def _is_big(name: str, text: str) -> bool:
    """Whether a table or alias of a plan is one of the large tables."""
    return bool(re.search(rf"{_BIG_TABLE.pattern}(?: AS)? `?{re.escape(name)}\b", text, re.IGNORECASE)) or bool(
        _BIG_TABLE.fullmatch(f"`{name}`")
    )


def lists(client: Client, namespace: str, *, timed: bool) -> Iterator[Visit]:
    """Each list, alone and with each choice of each field of its filter."""
    for name in LISTS:
        path = f"/admin/{name}/"
        first, context = visit(client, name, path, timed=timed)
        yield first
        yield from _beyond(client, name, path, {}, context, timed=timed)
        for chosen in choices(context, name, namespace):
            one, found = visit(client, name, f"{path}?{urlencode(chosen)}", timed=timed)
            yield one
            yield from _beyond(client, name, path, chosen, found, timed=timed)


def _beyond(client: Client, name: str, path: str, chosen: dict[str, str], context: Any, *, timed: bool) -> Iterator[Visit]:
    """The list deep inside, and in each other order that it offers."""
    orders = [{}, *({"sort": sort} for sort in sorts(context))]
    for order in orders:
        query = {**chosen, **order}
        if order:
            one, context = visit(client, name, f"{path}?{urlencode(query)}", timed=timed)
            yield one
        found = _of(context, "found")
        if found is not None and found.next is not None:
            middle = deep(found.next, found.rows)
            for at in (middle, replace(middle, side="before")) if timed else (middle,):
                yield visit(client, name, f"{path}?{urlencode({**query, 'at': at})}", timed=timed)[0]


def _of(context: Any, name: str) -> Any:
    return context.get(name) if context is not None else None


def sorts(context: Any) -> list[str]:
    """The orders that a list offers beside its own, as values of `sort`."""
    table = _of(context, "table")
    sorting = table.sorting if isinstance(table, ConsoleTable) else None
    return [] if sorting is None else re.findall(r"[?&]sort=([^&]+)", sorting.other)


def deep(cursor: Cursor, rows: list[Any]) -> Cursor:
    """A cursor in the middle of a list, in the form of the one to its second page."""
    if cursor.value is not None:
        span = Receipt.objects.aggregate(first=Min("received_at"), last=Max("received_at"))
        return replace(cursor, value=span["first"] + (span["last"] - span["first"]) / 2)
    ids: QuerySet[Any]
    if rows and isinstance(rows[0], Lane) and rows[0].hold is not None and rows[0].hold.id == rows[0].id:
        ids = LaneHold.objects.all()
    elif not rows or isinstance(rows[0], Lane):
        ids = WorkItem.objects.filter(state__in=NONTERMINAL)
    else:
        row: Model = rows[0]
        ids = type(row)._default_manager.all()
    span = ids.aggregate(first=Min("id"), last=Max("id"))
    return replace(cursor, id=(span["first"] + span["last"]) // 2)


def choices(context: Any, name: str, namespace: str) -> Iterator[dict[str, str]]:
    """Each choice of each field alone; of the fields with a text, one that many rows have and one that none has."""
    filters = _of(context, "filter")
    if filters is None:
        return
    samples = _samples(namespace)
    first = next(iter(context["found"].rows), None)
    for field, of in filters.form.fields.items():
        if isinstance(of, forms.ChoiceField):
            offered: Any = of.choices
            values = [str(value) for value, _ in offered if value]
        elif isinstance(of, MomentField):
            values = ["1h", "5d"]
        else:
            shown = str(getattr(first, filters.filters[field].field_name or field, NOBODY))
            values = [samples.get((name, field), samples.get(("", field), shown)), NOBODY]
        for value in values:
            yield {field: value}


def _samples(namespace: str) -> dict[tuple[str, str], str]:
    """(list or empty, field of its filter) → a value that its rows have; of the busiest source where one is asked for."""
    event = Event.objects.filter(namespace=namespace, source_id="1").order_by("-id")[0]
    dead = WorkItem.objects.filter(state=State.DEAD).order_by("-terminal_at")[0]
    return {
        ("", "source"): event.source_id,
        ("generations", "source"): f"{event.source_type}:{event.source_id}",
        ("dead-letters", "source"): f"{event.source_type}:{event.source_id}",
        ("", "delivery"): event.delivery_id,
        ("receipts", "delivery"): "d-7",
        ("", "kind"): event.event_kind,
        ("", "type"): event.source_type,
        ("", "namespace"): namespace,
        ("", "work"): dead.work_id,
        ("", "error"): "503",
        ("", "fingerprint"): str(dead.error_fingerprint),
    }


def details(client: Client, namespace: str, *, timed: bool) -> Iterator[Visit]:
    """Pages of one thing each: work in each state, the busiest source and lane, the trace of anything."""
    for page, path in _paths(namespace):
        yield visit(client, page, f"/admin/{path}", timed=timed)[0]


def _paths(namespace: str) -> Iterator[tuple[str, str]]:
    yield "overview", ""
    event = Event.objects.filter(namespace=namespace, source_id="1").order_by("-id")[0]
    cold = Event.objects.filter(namespace=namespace, source_id__startswith="1").order_by("id")[150]
    for one in (event, cold):
        names = {"namespace": namespace, "type": one.source_type, "id": one.source_id}
        yield from (("event", f"events/{one.id}/"), ("receipt", f"receipts/{one.receipt_id}/"))
        yield "source", f"sources/one/?{urlencode(names)}"
        for text in (one.delivery_id, f"{one.source_type}:{one.source_id}", one.source_id, str(one.receipt_id), NOBODY):
            yield "trace", f"trace/?{urlencode({'q': text})}"
    deepest = WorkItem.objects.filter(state=State.BLOCKED, projection_key=None).order_by("-id")[0]
    held = LaneHold.objects.order_by("id")[0]
    yield from (("lane", f"lanes/{deepest.lane_key}/"), ("lane", f"lanes/{held.lane_key}/"))
    for state in State:
        item = WorkItem.objects.filter(state=state).order_by("-id")[0]
        yield from (("generation", f"generations/{item.work_id}/"), ("trace", f"trace/?{urlencode({'q': item.work_id})}"))
    replay = WorkItem.objects.exclude(replay_of_work_id=None).order_by("id")[0]
    yield from (("generation", f"generations/{replay.work_id}/"), ("dead-letter", f"dead-letters/{replay.replay_of_work_id}/"))
    busiest = WorkItem.objects.filter(projection_key=event.projection_key, replay_of_work_id=None).order_by("-id")[0]
    yield "comparison", f"generations/{busiest.work_id}/compare/?inputs=all"
    yield "audit entry", f"audit/{AuditEntry.objects.order_by('-id')[0].id}/"
    yield "dead-letters by days", "dead-letters/?by=days"
    job = Job.objects.order_by("-id")[0]
    for query in ("", "?from=1000-0", *(f"?outcome={state.value}" for state in ItemState)):
        yield "job", f"replays/{job.id}/{query}"
    yield "preview", f"dead-letters/previews/{bulk_jobs.count(bulk_jobs.make(JobKind.REPLAY, WorkFilter(), actor='walk')).id}/"
    yield "record", f"records/{Record.objects.order_by('-id')[0].id}/"
    yield "failed signature", f"unverified/{UnverifiedDelivery.objects.order_by('-id')[0].id}/"
    route, endpoint = Route.objects.order_by("-id")[0], Endpoint.objects.order_by("id")[0]
    yield from (("route", f"routes/{route.id}/"), ("route form", f"routes/publish/?from={route.id}"))
    yield from (("endpoint", f"endpoints/{endpoint.id}/"), ("connect", f"endpoints/{endpoint.id}/connect/"))
    assert Pack.objects.filter(namespace=namespace).exists()
