"""Dead letters: work that failed for good, when and why, and what was done about it since."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.vary import vary_on_headers

from connectors.operations import verbs
from ops_ui.console.actions import action, actor_of, back, reason_of
from ops_ui.console.base import labels, navigation
from ops_ui.console.dead_letters import heat
from ops_ui.console.dead_letters import reads as dead_reads
from ops_ui.console.dead_letters.filter import DeadLetterFilter
from ops_ui.console.dead_letters.table import DeadLetterTable
from ops_ui.console.generations import views as generations
from ops_ui.console.lists import exports, keyset
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from projection.database import clock
from projection.models import WorkItem
from projection.refusals import Refused
from projection.replay.decision import Replayed
from projection.replay.discard import Discarded, Restored
from projection.states import State


@page(navigation.DEAD_LETTERS)
@vary_on_headers("HX-Request")
def listing(request: HttpRequest) -> HttpResponseBase:
    """The list of a filter; its first page with the heat table of the filter's route and pack, or for htmx only what
    changes. Some twelve queries."""
    filters = DeadLetterFilter(request.GET, queryset=WorkItem.objects.none())
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("dead_letters", _reader(filters), partial(_table, choosable=False)), wanted)
    cursor = keyset.Cursor.parse(request.GET.get("at", ""))
    found = dead_reads.find(filters, cursor)
    may_replay = request.user.has_perm("projection.replay_workitem")
    may_discard = request.user.has_perm("projection.discard_workitem")
    shows_discarded = filters.given().get("show") == "discarded"
    context = {
        "filter": filters,
        "is_filtered": bool(filters.given()),
        "found": found.page,
        "open": found.open,
        "table": _table(found.page.rows, choosable=may_replay or may_discard),
        "at_start": cursor is None,
        "may_replay": may_replay,
        "may_discard": may_discard,
        "shows_discarded": shows_discarded,
        "chosen_go_to": f"admin:{_verb(may_replay, shows_discarded)}",
        "by": heat.DAYS if request.GET.get("by") == heat.DAYS else heat.HOURS,
    }
    if cursor is None:
        given = filters.given()
        route, pack = str(given.get("route", "")), str(given.get("pack", ""))
        context["heat"], context["heat_is_cut"] = dead_reads.deaths(str(context["by"]), clock.now(), route=route, pack=pack)
    if request.headers.get("HX-Request"):
        return render(request, "console/dead_letters/dead_letters_live.html", context)
    return show(request, "console/dead_letters/dead_letters.html", "Dead letters", **context)


def _verb(may_replay: bool, shows_discarded: bool) -> str:
    """What the form of the list does unless another button is pressed."""
    if shows_discarded:
        return "restore"
    return "replay_preview" if may_replay else "discard_preview"


def _reader(filters: DeadLetterFilter) -> Callable[[keyset.Cursor | None, int], keyset.Page]:
    return lambda cursor, size: dead_reads.find(filters, cursor, size).page


def _table(found: list[WorkItem], *, choosable: bool) -> DeadLetterTable:
    replays = WorkItem.objects.only("id", "state", "replay_of_work_id").filter(replay_of_work_id__in=[row.work_id for row in found])
    return DeadLetterTable(
        found,
        names=labels.routes(row.route_id for row in found),
        replays={replay.replay_of_work_id: replay for replay in replays if replay.replay_of_work_id},
        choosable=choosable,
    )


@page(navigation.DEAD_LETTERS)
def detail(request: HttpRequest, work_id: str) -> HttpResponseBase:
    """The page of a dead work item; 404 when this work is not dead (its generation page has it)."""
    item = get_object_or_404(WorkItem, work_id=work_id, state=State.DEAD)
    return show(request, "console/generations/generation.html", "Dead letter", **generations.facts(request, item))


@action("projection.replay_workitem")
def replay(request: HttpRequest) -> HttpResponse:
    """Replays the dead item named by `work`, for `reason`. Several are a bulk job (`jobs/bulk.py`)."""
    named = _named(request, "Nothing was replayed")
    if named:
        work_id, reason = named
        retarget = request.POST.get("retarget") == "1"
        (result,) = verbs.replay([work_id], actor=actor_of(request), reason=reason, retarget=retarget)
        if isinstance(result, Replayed):
            messages.success(request, f"Replayed as {result.replay_work_id}.")
        else:
            messages.warning(request, f"{work_id} was not replayed: {result.reason}")
    return back(request, "admin:dead_letters")


@action("projection.discard_workitem")
def discard(request: HttpRequest) -> HttpResponse:
    """Discards the dead item named by `work`, for `reason`. Several are a bulk job (`jobs/bulk.py`)."""
    named = _named(request, "Nothing was discarded")
    if named:
        work_id, reason = named
        result = verbs.discard(work_id, actor=actor_of(request), reason=reason)
        if isinstance(result, Discarded):
            messages.success(request, "Discarded. Until its retention period ends, you can restore the dead letter.")
        else:
            messages.warning(request, f"{work_id} was not discarded: {result.reason}")
    return back(request, "admin:dead_letters")


@action("projection.discard_workitem")
def restore(request: HttpRequest) -> HttpResponse:
    """Takes back the discard of the items named by `work`, at most a page of the list, for `reason`."""
    chosen = request.POST.getlist("work")[: keyset.PAGE_SIZE]
    if not chosen:
        messages.error(request, "Nothing was restored: select at least one discarded dead letter.")
    elif reason := reason_of(request, "Nothing was restored"):
        outcomes = verbs.restore(chosen, actor=actor_of(request), reason=reason)
        done = sum(isinstance(one, Restored) for one in outcomes.values())
        if done:
            messages.success(request, f"Restored {done} dead letter{'' if done == 1 else 's'}. You can replay them again.")
        for one in outcomes.values():
            if isinstance(one, Refused):
                messages.warning(request, f"{one.id} was not restored: {one.reason}.")
    return back(request, "admin:dead_letters")


def _named(request: HttpRequest, undone: str) -> tuple[str, str] | None:
    """The work id and the reason of the form. None: one is missing, and a message says so."""
    chosen = request.POST.getlist("work")
    if len(chosen) != 1:
        messages.error(request, f"{undone}: select one dead letter. To act on several, select them in the list of dead letters.")
        return None
    reason = reason_of(request, undone)
    return (chosen[0], reason) if reason else None


URLS: Final[Urls] = (
    ("dead-letters/replay/", replay, "replay"),
    ("dead-letters/discard/", discard, "discard"),
    ("dead-letters/restore/", restore, "restore"),
    ("dead-letters/", listing, "dead_letters"),
    ("dead-letters/<ascii:work_id>/", detail, "dead_letter"),
)
