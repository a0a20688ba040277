"""The overview: is it flowing, what waits, what needs somebody?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.vary import vary_on_headers

from connectors.operations import audit_results
from ops_ui.console.base import navigation
from ops_ui.console.dead_letters import reads as dead_reads
from ops_ui.console.lists.charts import age_marks, age_share
from ops_ui.console.overview import alerts as overview_alerts
from ops_ui.console.overview import input_counts
from ops_ui.console.overview import reads as overview_reads
from ops_ui.console.overview.reads import Window
from ops_ui.console.pages import page, show
from ops_ui.monitoring import counts
from ops_ui.monitoring.counts import CONSOLE_CAP, Count, Waiting
from projection.database import clock
from projection.models import LaneHold, WorkItem
from projection.states import ReceiptState, State

ERRORS_SHOWN: Final = 6
LANES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Card:
    """One stage of the flow: how many rows are there, since when the oldest waits, and the list behind it."""

    title: str
    count: Count
    url: str
    note: str
    age: timedelta | None = None
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Age:
    """Since when the oldest of a stage waits, and how long its bar is (a percentage)."""

    card: Card
    share: float


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead items with the same error fingerprint among the newest ones."""

    error: str
    fingerprint: str
    items: int
    newest: datetime
    url: str


def overview(request: HttpRequest) -> HttpResponse:
    """The index of the console. A person without any right is told whom to ask, instead of an empty page."""
    if not request.user.has_perm(navigation.OVERVIEW.permission):
        return show(request, "console/base/no_rights.html", "No permissions yet")
    return _overview(request)  # type: ignore[return-value]  # a render; `page` widens it


@page(navigation.OVERVIEW)
@vary_on_headers("HX-Request")
def _overview(request: HttpRequest) -> HttpResponseBase:
    """All of the page, or for htmx only the part that changes. Some forty bounded queries, whatever the tables hold."""
    facts = _facts(clock.now(), overview_reads.WINDOWS.get(request.GET.get("flow", ""), overview_reads.HOUR))
    if request.headers.get("HX-Request"):
        return render(request, "console/overview/overview_live.html", facts)
    return show(request, "admin/index.html", "Overview", **facts)


def _facts(now: datetime, window: Window) -> dict[str, Any]:
    receipts = counts.receipts_by_state(CONSOLE_CAP)
    work = counts.work_by_state(CONSOLE_CAP)
    waiting = {one.stage: one for one in counts.oldest_waiting()}
    alive = counts.workers_alive(now)
    dead = dead_reads.open_now()
    series = overview_reads.flow(window, now)
    audit = audit_results.last()
    cards = _cards(now, receipts, work, waiting, dead.count)
    return {
        "now": now,
        "cards": cards,
        "is_empty": not any(receipts.values()) and not any(work.values()),
        "ages": [Age(card, age_share(card.age.total_seconds())) for card in cards if card.age is not None],
        "age_marks": age_marks(),
        "window": window,
        "windows": overview_reads.WINDOWS.values(),
        "series": series,
        "parts": list(
            zip(overview_reads.begins(window, now), *([bar.value for bar in one.chart.bars] for one in series), strict=True)
        ),
        "inputs": input_counts.newest(),
        "receipts": receipts,
        "work": work,
        "dead_groups": _dead_groups(dead.newest),
        "dead_grouped": dead_reads.NEWEST if dead.count.value > dead_reads.NEWEST else None,
        "holds": list(LaneHold.objects.order_by("held_at", "id")[:LANES_SHOWN]),
        "held": counts.lanes_held(CONSOLE_CAP),
        "blocked": overview_reads.longest_blocked(LANES_SHOWN),
        "alive": alive,
        "audit": audit,
        "audit_age": audit.age(now) if audit else None,
        "alerts": overview_alerts.find(now, receipts, work, alive, audit),
    }


def _cards(  # what `_facts` has read
    now: datetime, receipts: dict[str, Count], work: dict[str, Count], waiting: dict[str, Waiting], dead: Count
) -> list[Card]:
    def of_work(title: str, state: State, note: str, tone: str = "") -> Card:
        url = f"{reverse('admin:generations')}?{urlencode({'state': state.value})}"
        return Card(title, work[state], url, note, waiting[state.value].age(now), tone)

    to_route = Card(
        "Waiting for router",
        receipts[ReceiptState.PENDING],
        f"{reverse('admin:receipts')}?state=pending",
        "deliveries not routed yet",
        waiting["route"].age(now),
    )
    return [
        to_route,
        of_work("Queued", State.PENDING, "settling or due"),
        of_work("Blocked", State.BLOCKED, "waiting for earlier work"),
        of_work("Running", State.PROCESSING, "on a worker"),
        of_work("Retrying", State.RETRY, "waiting after a failure", "warn" if work[State.RETRY] else ""),
        Card("Dead letters", dead, reverse("admin:dead_letters"), "not replayed or discarded", None, "bad" if dead else ""),
    ]


def _dead_groups(rows: QuerySet[WorkItem]) -> list[DeadGroup]:
    groups: dict[str, list[Any]] = {}
    for row in rows.values("error_fingerprint", "last_error", "terminal_at"):
        groups.setdefault(row["error_fingerprint"] or "", []).append(row)
    largest = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:ERRORS_SHOWN]
    return [
        DeadGroup(
            error=(rows[0]["last_error"] or "no error recorded").strip().partition("\n")[0],
            fingerprint=fingerprint,
            items=len(rows),
            newest=rows[0]["terminal_at"],
            url=f"{reverse('admin:dead_letters')}?{urlencode({'fingerprint': fingerprint})}",
        )
        for fingerprint, rows in largest
    ]
