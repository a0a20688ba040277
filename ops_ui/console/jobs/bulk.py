"""Bulk replay and discard: from a choice to its preview, and from there to a durable job."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from connectors.operations import bulk_jobs
from connectors.operations.work_filters import WorkFilter, from_json
from ops_ui.console.actions import action, actor_of, back, demand, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.dead_letters.filter import DeadLetterFilter
from ops_ui.console.jobs import filter_words
from ops_ui.console.jobs.refusal_words import words
from ops_ui.console.jobs.views import job_or_404, rate_of
from ops_ui.console.pages import Urls, page, show
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobKind, JobRow, JobState
from projection.bulk.membership import PAGE
from projection.models import WorkItem
from projection.refusals import Refused

PERMISSIONS: Final = {JobKind.REPLAY: "projection.replay_workitem", JobKind.DISCARD: "projection.discard_workitem"}
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
    preview = bulk_jobs.count(bulk_jobs.make(kind, chosen, actor=actor_of(request), retarget=retarget))
    return HttpResponseRedirect(reverse("admin:bulk_preview", args=[preview.id]))


def _named(request: HttpRequest) -> WorkFilter | None:
    work = tuple(dict.fromkeys(request.POST.getlist("work")))
    if not work:
        messages.error(request, "Nothing selected. Select dead letters, or all that match the filter.")
    elif len(work) > MOST_NAMED:
        messages.error(request, f"Too many selected. Select at most {MOST_NAMED} dead letters, or all that match a filter.")
    return WorkFilter(work=work) if 0 < len(work) <= MOST_NAMED else None


def _matching(request: HttpRequest) -> WorkFilter | None:
    filters = DeadLetterFilter(QueryDict(request.POST.get("filter", "")), queryset=WorkItem.objects.none())
    if not filters.form.is_valid():  # a value left out would choose more than was meant
        messages.error(request, "The filter contains an invalid value. Correct it and try again.")
        return None
    chosen = filters.bulk_filter()
    if chosen is None:
        messages.error(request, "Nothing selected: the filter shows dead letters already replayed or discarded. Set Show to open.")
    return chosen


def _refused(request: HttpRequest) -> WorkFilter | None:
    """What a job refused, the first thousand of it."""
    items = jobs.items(_number(request, "job"), (ItemState.REFUSED,), limit=PAGE)
    if not items:
        messages.error(request, "Nothing selected: that job refused no dead letters.")
    return WorkFilter(work=tuple(item.work_id for item in items)) if items else None


def _again(request: HttpRequest) -> WorkFilter:
    """What a preview chose, to be counted another way."""
    return from_json(job_or_404(_number(request, "preview")).filter)


def _number(request: HttpRequest, name: str) -> int:
    """An id of the form; 0 where it is none."""
    text = request.POST.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < DIGITS else 0


@page(navigation.DEAD_LETTERS)
def preview_page(request: HttpRequest, preview_id: int) -> HttpResponseBase:
    """A job in its first state; once it is confirmed, its own page."""
    preview = job_or_404(preview_id)
    if preview.state is not JobState.PREVIEW:
        return HttpResponseRedirect(reverse("admin:job", args=[preview_id]))
    title = "Replay dead letters" if preview.kind is JobKind.REPLAY else "Discard dead letters"
    return show(request, "console/jobs/bulk_preview.html", title, **_facts(request, preview))


@action("projection.view_workitem")
def count(request: HttpRequest, preview_id: int) -> HttpResponse:
    """Counts the next part of a preview; for htmx the part of the page that says so, the whole page where it is confirmed by now."""
    preview = job_or_404(preview_id)
    demand(request, PERMISSIONS[preview.kind])
    preview = bulk_jobs.count(preview) if preview.state is JobState.PREVIEW else preview
    if not request.headers.get("HX-Request"):
        return HttpResponseRedirect(reverse("admin:bulk_preview", args=[preview_id]))
    if preview.state is not JobState.PREVIEW:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "console/jobs/bulk_counts.html", _facts(request, preview))


def _facts(request: HttpRequest, preview: JobRow) -> dict[str, Any]:
    """What the page says; who may not act sees the counts alone."""
    chosen = from_json(preview.filter)
    refused = sorted(preview.expected.refused.items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "preview": preview,
        "may_act": request.user.has_perm(PERMISSIONS[preview.kind]),
        "is_replay": preview.kind is JobKind.REPLAY,
        "choice": filter_words.members(chosen),
        "named": len(chosen.work),
        "missing": len(chosen.work) - preview.total if chosen.work else 0,
        "counts": preview.expected,
        "refused": [(code, words(code), number) for code, number in refused],
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
    preview = job_or_404(_number(request, "preview"))
    if preview.kind is not kind:
        raise Http404(f"job {preview.id} is not a {kind} job")
    to_preview = partial(back, request, "admin:bulk_preview", preview.id)
    if preview.fixed is None:
        messages.error(request, "Nothing was started: counting is not complete yet.")
        return to_preview()
    reason = reason_of(request, "Nothing was started")
    if reason is None:
        return to_preview()
    try:
        rate = rate_of(request.POST.get("rate", "").strip() or str(preview.rate))
        answer = bulk_jobs.confirm(preview.id, actor=actor_of(request), reason=reason, rate=rate)
    except ValueError:
        messages.error(request, "Nothing was started: enter the rate as a whole number of items per second; 0 means no limit.")
        return to_preview()
    if isinstance(answer, Refused):
        messages.info(request, "This preview was already confirmed; this is its job.")
    else:
        bulk_jobs.hurry(answer)
    return HttpResponseRedirect(reverse("admin:job", args=[preview.id]))


URLS: Final[Urls] = (
    ("dead-letters/replay-preview/", replay_preview, "replay_preview"),
    ("dead-letters/discard-preview/", discard_preview, "discard_preview"),
    ("dead-letters/replay-start/", replay_start, "replay_start"),
    ("dead-letters/discard-start/", discard_start, "discard_start"),
    ("dead-letters/previews/<int:preview_id>/", preview_page, "bulk_preview"),
    ("dead-letters/previews/<int:preview_id>/count/", count, "count_preview"),
)
