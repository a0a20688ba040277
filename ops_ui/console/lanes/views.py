"""Lanes: which have live work, what is in front, how deep they are and who holds them."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.http import Http404, HttpRequest, HttpResponseBase

from ops_ui.console.base import labels, navigation
from ops_ui.console.base.why_links import told
from ops_ui.console.generations.table import WorkTable
from ops_ui.console.lanes import export, reads
from ops_ui.console.lanes import strip as lane_strip
from ops_ui.console.lanes.filter import LaneFilter
from ops_ui.console.lists import exports, keyset
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from projection.database import clock
from projection.inspection import lane_reads
from projection.inspection.why import why, why_each
from projection.models import LaneHold, WorkItem

RECENT_SHOWN = 20


@page(navigation.LANES)
def listing(request: HttpRequest) -> HttpResponseBase:
    filters = LaneFilter(request.GET, queryset=WorkItem.objects.none())
    cursor = keyset.Cursor.parse(request.GET.get("at", ""))
    cursor = cursor if cursor is None or cursor.value is None else None
    chosen = filters.form.cleaned_data.get("head", "") if filters.form.is_valid() else ""
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("lanes", partial(reads.page, chosen), export.lanes), wanted)
    found = reads.page(chosen, cursor)
    heads = [lane.head for lane in found.rows if lane.head is not None]
    reasons = why_each(heads)
    whys = {head.id: told(reasons[head.id], head) for head in heads if head.id in reasons}
    lines = [(lane, whys.get(lane.head.id) if lane.head else None) for lane in found.rows]
    context = {"filter": filters, "is_filtered": bool(chosen), "found": found, "lines": lines, "at_start": cursor is None}
    return show(request, "console/lanes/lanes.html", "Lanes", **context)


@page(navigation.LANES)
def detail(request: HttpRequest, lane_key: str) -> HttpResponseBase:
    """The live items of the lane in their order, its hold, and what ended there last. 404 for a lane never seen."""
    hold = LaneHold.objects.filter(lane_key=lane_key).first()
    items = lane_reads.front(lane_key, keyset.PAGE_SIZE)
    ended = lane_reads.ended_last(lane_key, RECENT_SHOWN)
    if not items and not ended and hold is None:
        raise Http404("no work of this lane is retained")
    head = lane_strip.head_of(items)
    depth = lane_reads.depth_by_lane([lane_key]).get(lane_key, 0)
    names = labels.routes(item.route_id for item in [*items, *ended])
    context = {
        "lane_key": lane_key,
        "name": str(hold.lane) if hold is not None else next(iter(lane_reads.lane_names([*items, *ended][:1]).values())),
        "account": next((item.account for item in [*items, *ended]), ""),
        "hold": hold,
        "head": head,
        "why": told(why(head), head) if head else None,
        "strip": lane_strip.strip(items, clock.now()),
        "strip_more": max(depth - len(items), 0),
        "more": depth > len(items),
        "depth": depth,
        "items": WorkTable(items, names=names),
        "ended": WorkTable(ended, names=names),
        "may_hold": request.user.has_perm("projection.hold_lane"),
        "may_release": request.user.has_perm("projection.release_lane"),
    }
    return show(request, "console/lanes/lane.html", "Lane", **context)


URLS: Final[Urls] = (
    ("lanes/", listing, "lanes"),
    ("lanes/<ascii:lane_key>/", detail, "lane"),
)
