"""Dead letters: work that failed for good, why, and what was done about it since."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from ops_ui import labels, rooms
from ops_ui.filters import DeadLetterFilter
from ops_ui.pages import Listing, Urls, page, show, show_list
from ops_ui.tables import DeadLetterTable
from ops_ui.views import generations
from projection.models import WorkItem
from projection.states import State


@page(rooms.DEAD_LETTERS)
def listing(request: HttpRequest) -> HttpResponseBase:
    may_replay = request.user.has_perm("projection.replay_workitem")
    return show_list(
        request,
        Listing(
            title="Dead letters",
            rows=WorkItem.objects.filter(state=State.DEAD).defer("discard_reason"),
            filters=DeadLetterFilter,
            table=lambda found: _table(found, may_replay),
            empty="Nothing has died. Work comes here when its attempts are used up, or when its flow says that it can never succeed.",
            template="console/dead_letters.html",
        ),
        {"may_replay": may_replay},
    )


def _table(found: list[WorkItem], may_replay: bool) -> DeadLetterTable:
    replays = WorkItem.objects.only("id", "state", "replay_of_work_id").filter(replay_of_work_id__in=[row.work_id for row in found])
    return DeadLetterTable(
        found,
        names=labels.routes(row.route_id for row in found),
        replays={replay.replay_of_work_id: replay for replay in replays if replay.replay_of_work_id},
        choosable=may_replay,
    )


@page(rooms.DEAD_LETTERS)
def detail(request: HttpRequest, work_id: str) -> HttpResponseBase:
    """The page of a dead work item; 404 when this work is not dead (its generation page has it)."""
    item = get_object_or_404(WorkItem, work_id=work_id, state=State.DEAD)
    return show(request, "console/generation.html", "Dead letter", **generations.facts(request, item))


URLS: Final[Urls] = (
    ("dead-letters/", listing, "dead_letters"),
    ("dead-letters/<ascii:work_id>/", detail, "dead_letter"),
)
