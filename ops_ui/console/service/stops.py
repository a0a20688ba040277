"""What operators stop and start again: lanes (hold, release), namespaces, packs and routes (pause, resume); and what is stopped now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase

from connectors import durations
from connectors.configuration import pausing
from connectors.configuration.change import NotFound
from connectors.configuration.pausing import Kind, Paused
from connectors.models import Namespace, Pack, Route
from connectors.operations import verbs
from connectors.operations.lane_names import NamedLane, find_lanes
from ops_ui.console.actions import action, actor_of, back, reason_of, tell
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.service import export
from ops_ui.monitoring import counts
from projection.database import clock
from projection.inspection.backlog import Backlog
from projection.refusals import Refused

KINDS: Final[tuple[Kind, ...]] = ("namespace", "pack", "route")
SHOWN: Final = 200
"""Paused rows of a kind that the page lists; nobody pauses so many things one by one."""
CHOICES: Final = 500


@dataclass(frozen=True, slots=True)
class Stopped:
    """Something paused: a name, whatever its version or incarnation. `row_id` is of its newest row, 0 for a namespace."""

    kind: Kind
    namespace: str
    name: str
    row_id: int
    since: datetime
    by: str | None
    reason: str | None
    until: datetime | None
    may_resume: bool


@page(navigation.PAUSES)
def listing(request: HttpRequest) -> HttpResponseBase:
    """What is paused, who paused it, and forms to pause more. Nine queries."""
    now = clock.now()
    stopped = [one for kind in KINDS for one in _stopped(request, kind, now)]
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("pauses", exports.whole(stopped), export.pauses), wanted)
    forms = [(kind, _names(kind)) for kind in KINDS if request.user.has_perm(f"connectors.pause_{kind}")]
    held = counts.lanes_held(counts.CONSOLE_CAP)
    given = [(kind, names) for kind, names in forms if names]
    return show(request, "console/service/pauses.html", "Pauses", stopped=stopped, forms=given, held=held)


def _stopped(request: HttpRequest, kind: Kind, now: datetime) -> list[Stopped]:
    """Paused things of a kind, by name; the newest row of a name stands for it (ix_…_paused)."""
    may_resume = request.user.has_perm(f"connectors.resume_{kind}")
    found: dict[tuple[str, str], Stopped] = {}
    for row in _rows(kind).exclude(paused_at=None).order_by("paused_at", "pk")[:SHOWN]:
        if pausing.is_paused(row, now):
            namespace, name = _name(row)
            row_id = 0 if isinstance(row, Namespace) else row.id
            found[namespace, name] = Stopped(
                kind, namespace, name, row_id, row.paused_at, row.paused_by, row.pause_reason, row.resume_at, may_resume
            )
    return list(found.values())


def _rows(kind: Kind) -> QuerySet[Any]:
    rows: dict[Kind, QuerySet[Any]] = {
        "namespace": Namespace.objects.all(),
        "pack": Pack.objects.all(),
        "route": Route.objects.all(),
    }
    return rows[kind]


def _name(row: Namespace | Pack | Route) -> tuple[str, str]:
    if isinstance(row, Namespace):
        return row.name, row.name
    return row.namespace, row.name if isinstance(row, Pack) else row.route_key


def _names(kind: Kind) -> list[str]:
    """What may be paused, `namespace/name` (a namespace by its name alone)."""
    rows = _rows(kind)
    if kind == "namespace":
        return list(rows.order_by("name").values_list("name", flat=True)[:CHOICES])
    column = "name" if kind == "pack" else "route_key"
    rows = rows.filter(removed_at=None) if kind == "pack" else rows.filter(is_current=True, deleted_at=None)
    names = rows.order_by("namespace", column).values_list("namespace", column).distinct()[:CHOICES]
    return [f"{namespace}/{name}" for namespace, name in names]


@action("connectors.pause_namespace")
def pause_namespace(request: HttpRequest) -> HttpResponse:
    return _pause(request, "namespace")


@action("connectors.pause_pack")
def pause_pack(request: HttpRequest) -> HttpResponse:
    return _pause(request, "pack")


@action("connectors.pause_route")
def pause_route(request: HttpRequest) -> HttpResponse:
    return _pause(request, "route")


@action("connectors.resume_namespace")
def resume_namespace(request: HttpRequest) -> HttpResponse:
    return _resume(request, "namespace")


@action("connectors.resume_pack")
def resume_pack(request: HttpRequest) -> HttpResponse:
    return _resume(request, "pack")


@action("connectors.resume_route")
def resume_route(request: HttpRequest) -> HttpResponse:
    return _resume(request, "route")


def _pause(request: HttpRequest, kind: Kind) -> HttpResponse:
    """Pauses what `name` says (`namespace/name`), for `reason`, until `until` or until it is resumed."""
    reason = reason_of(request, "Nothing was paused")
    ends, wrong = _until(request, "Nothing was paused") if reason else (None, True)
    if reason and not wrong:
        namespace, name = _target(request, kind)
        try:
            done = pausing.pause(kind, namespace, name, actor=actor_of(request), reason=reason, resume_at=ends)
        except NotFound as missing:
            messages.error(request, f"Nothing was paused: {missing}.")
        else:
            refused = done if isinstance(done, Refused) else None
            tell(request, refused, f"Paused {kind} {name}. {_waits(done.backlog)}" if isinstance(done, Paused) else "")
    return back(request, "admin:pauses")


def _resume(request: HttpRequest, kind: Kind) -> HttpResponse:
    reason = reason_of(request, "Nothing was resumed")
    if reason:
        namespace, name = _target(request, kind)
        try:
            done = pausing.resume(kind, namespace, name, actor=actor_of(request), reason=reason)
        except NotFound as missing:
            messages.error(request, f"Nothing was resumed: {missing}.")
        else:
            tell(request, done if isinstance(done, Refused) else None, f"Resumed {kind} {name}.")
    return back(request, "admin:pauses")


def _target(request: HttpRequest, kind: Kind) -> tuple[str, str]:
    given = request.POST.get("name", "")
    if kind == "namespace":
        return given, given
    namespace, _, name = given.partition("/")
    return namespace, name


def _waits(backlog: Backlog) -> str:
    least = "" if backlog.is_exact else "at least "
    return f"Waiting work: {least}{backlog.count:,}." if backlog.count else "No work is waiting."


def _until(request: HttpRequest, undone: str) -> tuple[datetime | None, bool]:
    """(the end that the form gives, whether it is wrong; then a message says why)."""
    text = request.POST.get("until", "").strip()
    if not text:
        return None, False
    try:
        return durations.deadline(text, clock.now()), False
    except ValueError as wrong:
        messages.error(request, f"{undone}: {wrong}.")
        return None, True


@action("projection.hold_lane")
def hold(request: HttpRequest, lane_key: str) -> HttpResponse:
    """Lets nothing of the lane be claimed, for `reason`, until `until` or until it is released."""
    lane = _lane(lane_key)
    reason = reason_of(request, "The lane was not held")
    ends, wrong = _until(request, "The lane was not held") if reason else (None, True)
    if reason and not wrong:
        refused = verbs.hold(lane, actor=actor_of(request), reason=reason, release_at=ends)
        tell(request, refused, f"Lane {lane.lane} held. Running work will finish.")
    return back(request, "admin:lane", lane_key)


@action("projection.release_lane")
def release(request: HttpRequest, lane_key: str) -> HttpResponse:
    """Lets a held lane be claimed again, for `reason`."""
    lane = _lane(lane_key)
    reason = reason_of(request, "The lane was not released")
    if reason:
        refused = verbs.release(lane, actor=actor_of(request), reason=reason)
        tell(request, refused, f"Lane {lane.lane} released.")
    return back(request, "admin:lane", lane_key)


def _lane(lane_key: str) -> NamedLane:
    found = [lane for lane in find_lanes(lane_key) if lane.lane_key == lane_key]
    if not found:
        raise Http404("the lane has no retained work and is not held")
    return found[0]


URLS: Final[Urls] = (
    ("pauses/", listing, "pauses"),
    ("pauses/namespace/pause/", pause_namespace, "pause_namespace"),
    ("pauses/namespace/resume/", resume_namespace, "resume_namespace"),
    ("pauses/pack/pause/", pause_pack, "pause_pack"),
    ("pauses/pack/resume/", resume_pack, "resume_pack"),
    ("pauses/route/pause/", pause_route, "pause_route"),
    ("pauses/route/resume/", resume_route, "resume_route"),
    ("lanes/<ascii:lane_key>/hold/", hold, "hold_lane"),
    ("lanes/<ascii:lane_key>/release/", release, "release_lane"),
)
