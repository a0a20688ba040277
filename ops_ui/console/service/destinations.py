"""Destinations: what flows call and what keeps their work waiting (outages of others, limits), and a try at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from connectors.operations import verbs
from ops_ui.console.actions import action, actor_of, back, reason_of, tell
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.service import export
from projection.database import clock
from projection.limits.circuit_breaker import ASKED, CLOSED, FAILING, HALF_OPEN, OPEN
from projection.models import Destination, RateBucket

SHOWN: Final = 200
"""Destinations and limits that the page lists: there is one for each system and quota, not for each record."""
WORDS: Final = {
    CLOSED: "healthy",
    FAILING: "failing",
    ASKED: "throttled",
    OPEN: "parked (circuit open)",
    HALF_OPEN: "trying one item",
}


@dataclass(frozen=True, slots=True)
class Line:
    row: Destination
    word: str
    tone: str
    """Of its badge: `dead` (parked), `retry` (in trouble) or `processed` (well)."""
    is_parked: bool


@dataclass(frozen=True, slots=True)
class Limit:
    row: RateBucket
    seconds: float
    next_free: datetime | None
    """Ahead: its starts are used up until then. None: one is free."""


@page(navigation.DESTINATIONS)
def listing(request: HttpRequest) -> HttpResponseBase:
    """Those in trouble first, then those that are well again; limits below, a list of their own as a file. Three queries."""
    now = clock.now()
    rows = [_line(row, now) for row in Destination.objects.order_by("name", "id")[:SHOWN]]
    limits = [_limit(row, now) for row in RateBucket.objects.order_by("namespace", "name", "id")[:SHOWN]]
    wanted = exports.requested(request)
    if wanted is not None:
        asked = Export("destinations", exports.whole(rows), export.destinations)
        if request.GET.get("list") == "limits":
            asked = Export("limits", exports.whole(limits), export.limits)
        return exports.answer(request, asked, wanted)
    context = {
        "troubled": sorted((line for line in rows if line.row.state != CLOSED), key=lambda line: not line.is_parked),
        "well": [line for line in rows if line.row.state == CLOSED],
        "limits": limits,
        "may_try": request.user.has_perm("projection.try_destination"),
    }
    return show(request, "console/service/destinations.html", "Destinations", **context)


def _line(row: Destination, now: datetime) -> Line:
    is_parked = row.parked_until is not None and row.parked_until > now
    tone = "dead" if is_parked else "processed" if row.state == CLOSED else "retry"
    return Line(row, WORDS.get(row.state, row.state), tone, is_parked)


def _limit(row: RateBucket, now: datetime) -> Limit:
    return Limit(row, row.per_microseconds / 1_000_000, row.next_slot_at if row.next_slot_at > now else None)


@action("projection.try_destination")
def try_now(request: HttpRequest) -> HttpResponse:
    """Ends the pause of the parked destination named `name`, for `reason`: its next item is let through at once."""
    name = request.POST.get("name", "")
    reason = reason_of(request, "The destination was not tried")
    if reason:
        refused = verbs.try_destination(name, actor=actor_of(request), reason=reason)
        tell(request, refused, f"The next item tries destination {name} now.")
    return back(request, "admin:destinations")


URLS: Final[Urls] = (
    ("destinations/", listing, "destinations"),
    ("destinations/retry/", try_now, "try_destination"),
)
