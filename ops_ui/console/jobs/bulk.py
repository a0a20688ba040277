"""Bulk replay and discard: from a choice to its preview, and from there to a durable job."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from connectors.operations.bulk_jobs import DEFAULT_RATE
from connectors.operations.work_filters import UnknownName, WorkFilter, from_json
from ops_ui.console.actions import action, actor_of, back, demand, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.dead_letters.filter import DeadLetterFilter
from ops_ui.console.jobs import bulk_previews, filter_words
from ops_ui.console.jobs.refusal_words import words
from ops_ui.console.pages import Urls, page, show
from ops_ui.preview_models import Preview
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobKind
from projection.bulk.steps import PAGE
from projection.models import WorkItem

PERMISSIONS: Final = {JobKind.REPLAY: "projection.replay_workitem", JobKind.DISCARD: "projection.discard_workitem"}
HIGHEST_RATE: Final = 100_000
MOST_NAMED: Final = 500
"""Of one form: a page of the list has 50, and Django reads 1,000 fields of a form at most."""
DIGITS: Final = 19
"""Of the largest number that an id column holds."""


@action(PERMISSIONS[JobKind.REPLAY])
def replay_preview(request: HttpRequest) -> HttpResponse:
    """Counts what a replay of a choice would come to, on a page of its own; changes no work."""
    return _preview(request, JobKind.REPLAY)


@action(PERMISSIONS[JobKind.DISCARD])
def discard_preview(request: HttpRequest) -> HttpResponse:
    """As `replay_preview`, for a discard."""
    return _preview(request, JobKind.DISCARD)


def _preview(request: HttpRequest, kind: JobKind) -> HttpResponse:
    """`what` is `chosen` (with `work`), `matching` (with the list's query as `filter`), `refused` (with a `job`) or `again` (`preview`)."""
    choices = {"matching": _matching, "refused": _refused, "again": _again}
    chosen = choices.get(request.POST.get("what", ""), _named)(request)
    if chosen is None:
        return back(request, "admin:dead_letters")
    retarget = kind is JobKind.REPLAY and request.POST.get("retarget") == "1"
    preview = bulk_previews.make(kind, chosen, actor=actor_of(request), retarget=retarget)
    return HttpResponseRedirect(reverse("admin:bulk_preview", args=[preview.id]))


def _named(request: HttpRequest) -> WorkFilter | None:
    work = tuple(dict.fromkeys(request.POST.getlist("work")))
    if not work:
        messages.error(request, "Nothing was chosen: tick dead letters, or take all that match.")
    elif len(work) > MOST_NAMED:
        messages.error(request, f"Nothing was chosen: name at most {MOST_NAMED}, or take all that match a filter.")
    return WorkFilter(work=work) if 0 < len(work) <= MOST_NAMED else None


def _matching(request: HttpRequest) -> WorkFilter | None:
    filters = DeadLetterFilter(QueryDict(request.POST.get("filter", "")), queryset=WorkItem.objects.none())
    if not filters.form.is_valid():  # a value left out would choose more than was meant
        messages.error(request, "Nothing was chosen: a value of the filter is wrong; mend it first.")
        return None
    chosen = filters.bulk_filter()
    if chosen is None:
        messages.error(request, "Nothing was chosen: the filter shows what was dealt with already.")
    return chosen


def _refused(request: HttpRequest) -> WorkFilter | None:
    """What a job refused, the first thousand of it."""
    items = jobs.items(_number(request, "job"), (ItemState.REFUSED,), limit=PAGE)
    if not items:
        messages.error(request, "Nothing was chosen: that job has refused nothing.")
    return WorkFilter(work=tuple(item.work_id for item in items)) if items else None


def _again(request: HttpRequest) -> WorkFilter:
    """What a preview chose, to be counted another way."""
    return from_json(get_object_or_404(Preview, id=_number(request, "preview")).filter)


def _number(request: HttpRequest, name: str) -> int:
    """An id of the form; 0 where it is none."""
    text = request.POST.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < DIGITS else 0


@page(navigation.DEAD_LETTERS)
def preview_page(request: HttpRequest, preview_id: int) -> HttpResponseBase:
    preview = get_object_or_404(Preview, id=preview_id)
    title = "Replay dead letters" if preview.kind == JobKind.REPLAY else "Discard dead letters"
    return show(request, "console/jobs/bulk_preview.html", title, **_facts(request, preview))


@action("projection.view_workitem")
def count(request: HttpRequest, preview_id: int) -> HttpResponse:
    """Counts the next part of a preview; for htmx the part of the page that says so."""
    preview = get_object_or_404(Preview, id=preview_id)
    demand(request, PERMISSIONS[JobKind(preview.kind)])
    bulk_previews.go_on(preview)
    if request.headers.get("HX-Request"):
        return render(request, "console/jobs/bulk_counts.html", _facts(request, preview))
    return HttpResponseRedirect(reverse("admin:bulk_preview", args=[preview_id]))


def _facts(request: HttpRequest, preview: Preview) -> dict[str, Any]:
    """What the page says; who may not act sees the counts alone."""
    chosen = from_json(preview.filter)
    if chosen.until == preview.made_at:
        chosen = replace(chosen, until=None)  # nobody asked for that bound: a preview is about what was dead when it was made
    counted = bulk_previews.counted(preview)
    refused = sorted(counted.counts.refused.items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "preview": preview,
        "may_act": request.user.has_perm(PERMISSIONS[JobKind(preview.kind)]),
        "is_replay": preview.kind == JobKind.REPLAY,
        "choice": filter_words.members(chosen),
        "named": len(chosen.work),
        "missing": len(chosen.work) - counted.counts.total if chosen.work else 0,
        "counted": counted,
        "counts": counted.counts,
        "refused": [(code, words(code), number) for code, number in refused],
        "rate": DEFAULT_RATE,
        "back": f"{reverse('admin:dead_letters')}?{filter_words.query(chosen)}",
    }


@action(PERMISSIONS[JobKind.REPLAY])
def replay_start(request: HttpRequest) -> HttpResponse:
    """Starts the replay of a counted preview as a durable job."""
    return _start(request, JobKind.REPLAY)


@action(PERMISSIONS[JobKind.DISCARD])
def discard_start(request: HttpRequest) -> HttpResponse:
    """As `replay_start`, for a discard."""
    return _start(request, JobKind.DISCARD)


def _start(request: HttpRequest, kind: JobKind) -> HttpResponse:
    preview = get_object_or_404(Preview, id=_number(request, "preview"), kind=kind.value)
    to_preview = partial(back, request, "admin:bulk_preview", preview.id)
    if not bulk_previews.counted(preview).is_whole:
        messages.error(request, "Nothing was started: it is not counted to the end yet.")
        return to_preview()
    rate = _rate(request)
    reason = reason_of(request, "Nothing was started") if rate is not None else None
    if rate is None or reason is None:
        return to_preview()
    try:
        job_id, is_new = bulk_previews.confirm(preview.id, actor=actor_of(request), reason=reason, rate=rate)
    except UnknownName as unknown:
        messages.error(request, f"Nothing was started: {unknown}.")
        return to_preview()
    if not is_new:
        messages.info(request, "This preview was confirmed before; this is its job.")
    return HttpResponseRedirect(reverse("admin:job", args=[job_id]))


def _rate(request: HttpRequest) -> int | None:
    """Items a second, 0 = as fast as it goes; None (and a message) for anything else."""
    text = request.POST.get("rate", "").strip() or str(DEFAULT_RATE)
    if text.isascii() and text.isdecimal() and int(text) <= HIGHEST_RATE:
        return int(text)
    messages.error(request, "Nothing was started: the rate is a whole number of items a second, 0 for as fast as it goes.")
    return None


URLS: Final[Urls] = (
    ("dead-letters/replay-preview/", replay_preview, "replay_preview"),
    ("dead-letters/discard-preview/", discard_preview, "discard_preview"),
    ("dead-letters/replay-start/", replay_start, "replay_start"),
    ("dead-letters/discard-start/", discard_start, "discard_start"),
    ("dead-letters/previews/<int:preview_id>/", preview_page, "bulk_preview"),
    ("dead-letters/previews/<int:preview_id>/count/", count, "count_preview"),
)
