"""Generations: executable work, the range of events that each one gets, its attempts, neighbours and replays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse

from connectors.models import Route
from connectors.operations import verbs
from connectors.operations.work_detail import replays
from ops_ui.console.actions import action, actor_of, back, reason_of, tell
from ops_ui.console.base import labels, navigation
from ops_ui.console.base.navigation import HasPermissions
from ops_ui.console.base.why_links import told
from ops_ui.console.generations import range_reads
from ops_ui.console.generations.filter import GenerationFilter
from ops_ui.console.generations.table import WorkTable
from ops_ui.console.lists import charts
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.payloads.masks import erasure_of
from ops_ui.console.payloads.panels import event_panel
from projection.facts import flow_name
from projection.inspection.why import why
from projection.models import Event, WorkFailure, WorkItem
from projection.refusals import Refused
from projection.replay.cancel import CANCELLABLE
from projection.states import NONTERMINAL, State

FAILURES_SHOWN = 50


@page(navigation.GENERATIONS)
def listing(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Generations",
            rows=WorkItem.objects.defer("last_error", "discard_reason"),
            filters=GenerationFilter,
            table=lambda found: WorkTable(found, names=labels.routes(row.route_id for row in found)),
            empty="No work yet. Events that match a published route become work.",
            next_page=navigation.ROUTES,
        ),
    )


@page(navigation.GENERATIONS)
def detail(request: HttpRequest, work_id: str) -> HttpResponseBase:
    item = get_object_or_404(WorkItem, work_id=work_id)
    return show(request, "console/generations/generation.html", "Generation", **facts(request, item))


def facts(request: HttpRequest, item: WorkItem) -> dict[str, Any]:
    """What the pages of a generation and of a dead letter say about `item`. Some fifteen queries, whatever its size."""
    projected = item.projection_key is not None
    inputs = range_reads.inputs(item)
    shown = _shown_input(request, item, inputs)
    return {
        "item": item,
        "flow": flow_name(item.companion_pack, item.companion_flow),
        "route": Route.objects.filter(id=item.route_id).first(),
        "event": Event.objects.defer("payload").filter(id=item.event_id).first(),
        "why": told(why(item), item) if State(item.state) in NONTERMINAL else None,
        "range": inputs,
        "input": shown,
        "erasure": erasure_of(shown) if shown else None,
        "payload": event_panel(request, shown) if shown and shown.erasure_id is None else None,
        "timeline": charts.timeline([(event.created_date, event.id == item.event_id) for event in inputs.inputs]),
        "predecessor": range_reads.before(item) if projected else None,
        "successor": range_reads.after(item) if projected and item.replay_of_work_id is None else None,
        "replays": replays(item),
        "failures": list(WorkFailure.objects.filter(work_item_id=item.id).order_by("-attempt", "-id")[:FAILURES_SHOWN]),
        "offers": offers(request.user, item),
    }


def _shown_input(request: HttpRequest, item: WorkItem, inputs: range_reads.Range) -> Event | None:
    """The input whose payload is shown: that of the parameter `input`, else the selected one, else the newest; None: there is none, or no
    right to see events."""
    if not request.user.has_perm(navigation.EVENTS.permission):
        return None
    by_id = {str(event.id): event for event in inputs.inputs}
    newest = inputs.inputs[-1] if inputs.inputs else None
    return by_id.get(request.GET.get("input", ""), by_id.get(str(item.event_id), newest))


@dataclass(frozen=True, slots=True)
class Offer:
    """A button on the page of a work item."""

    title: str
    url: str
    ends_work: bool = False
    """It cannot be taken back."""


def offers(user: HasPermissions, item: WorkItem) -> list[Offer]:
    """What this person may do to the item as it stands, the likeliest first."""
    found: list[Offer] = []
    state = State(item.state)
    if state is State.DEAD and item.discarded_at is None:
        found += _offer(user, "replay_workitem", "Replay", reverse("admin:replay"))
        found += _offer(user, "discard_workitem", "Discard", reverse("admin:discard"), ends_work=True)
    if state is State.DEAD and item.discarded_at is not None:
        found += _offer(user, "discard_workitem", "Restore", reverse("admin:restore"))
    if state is State.RETRY:
        found += _offer(user, "retry_workitem", "Retry now", reverse("admin:retry_now", args=[item.work_id]))
    if state in CANCELLABLE:
        found += _offer(user, "cancel_workitem", "Cancel", reverse("admin:cancel_work", args=[item.work_id]), ends_work=True)
    return found


def _offer(user: HasPermissions, right: str, title: str, url: str, *, ends_work: bool = False) -> list[Offer]:
    return [Offer(title, url, ends_work)] if user.has_perm(f"projection.{right}") else []


@action("projection.retry_workitem")
def retry_now(request: HttpRequest, work_id: str) -> HttpResponse:
    """Ends the wait of an item that waits to retry."""
    return _act(request, work_id, "The retry was not started", verbs.retry_now, "Retry is due now; the next free worker runs it.")


@action("projection.cancel_workitem")
def cancel(request: HttpRequest, work_id: str) -> HttpResponse:
    """Ends work that nobody executes."""
    return _act(request, work_id, "The item was not cancelled", verbs.cancel, "Cancelled. Later work of the lane continues.")


def _act(request: HttpRequest, work_id: str, undone: str, verb: Callable[..., object], done: str) -> HttpResponse:
    reason = reason_of(request, undone)
    if reason:
        outcome = verb(work_id, actor=actor_of(request), reason=reason)
        tell(request, outcome if isinstance(outcome, Refused) else None, done)
    return back(request, "admin:generations")


URLS: Final[Urls] = (
    ("generations/<ascii:work_id>/retry-now/", retry_now, "retry_now"),
    ("generations/<ascii:work_id>/cancel/", cancel, "cancel_work"),
    ("generations/", listing, "generations"),
    ("generations/<ascii:work_id>/", detail, "generation"),
)
