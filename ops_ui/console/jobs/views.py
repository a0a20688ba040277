"""Replays: bulk jobs over dead letters, how far each is, what became of each item, and the verbs over them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.vary import vary_on_headers

from connectors.operations import bulk_jobs
from connectors.operations.work_filters import WorkFilter, from_json
from ops_ui.console.actions import action, actor_of, back, reason_of
from ops_ui.console.base import labels, navigation
from ops_ui.console.jobs import export, filter_words
from ops_ui.console.jobs import reads as job_reads
from ops_ui.console.jobs.progress import Progress, progress, standing
from ops_ui.console.lists import exports, keyset
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.monitoring import counts
from projection.bulk import jobs
from projection.bulk.job_rows import ItemState, JobRow, JobState
from projection.database import clock
from projection.job_models import Job
from projection.refusals import Refused

STOP_POLLING: Final = 286
"""htmx asks no more after this status: an ended job does not change."""


@dataclass(frozen=True, slots=True)
class Line:
    """One job in the list."""

    job: Job
    progress: Progress
    choice: list[tuple[str, Any]]
    named: int


@page(navigation.JOBS)
@vary_on_headers("HX-Request")
def listing(request: HttpRequest) -> HttpResponseBase:
    """The newest jobs; for htmx the rows alone. Two queries."""
    wanted = exports.requested(request)
    if wanted is not None:
        read = partial(keyset.page, _confirmed(), keyset.NEWEST_FIRST)
        return exports.answer(request, Export("replays", read, export.jobs), wanted)
    cursor = keyset.Cursor.parse(request.GET.get("at", ""))
    found = keyset.page(_confirmed(), keyset.NEWEST_FIRST, cursor)
    context = {"found": found, "lines": [_line(job) for job in found.rows], "at_start": cursor is None}
    if request.headers.get("HX-Request"):
        return render(request, "console/jobs/job_rows.html", context)
    return show(request, "console/jobs/jobs.html", "Bulk jobs", **context)


def _confirmed() -> QuerySet[Job]:
    return Job.objects.exclude(state=JobState.PREVIEW.value)


def _line(job: Job) -> Line:
    chosen = _chosen(job.filter)
    return Line(job, progress(job), filter_words.members(chosen), len(chosen.work))


def _chosen(text: str) -> WorkFilter:
    """A stored filter; an empty one where a newer process wrote what this one cannot read."""
    try:
        return from_json(text)
    except (TypeError, ValueError, json.JSONDecodeError):
        return WorkFilter()


@page(navigation.JOBS)
@vary_on_headers("HX-Request")
def detail(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """One job; for htmx the part that changes, until the job and its replays have ended. At most fifteen queries."""
    job = job_or_404(job_id)
    if job.state is JobState.PREVIEW:
        return HttpResponseRedirect(reverse("admin:bulk_preview", args=[job_id]))
    outcome = request.GET.get("outcome", "")
    state = ItemState(outcome) if outcome in set(ItemState) else None
    wanted = exports.requested(request)
    if wanted is not None:
        read = export.result_pages(job.id, state)
        return exports.answer(request, Export(f"replay-{job.id}", read, export.results), wanted)
    place = job_reads.parse(request.GET.get("from", ""))
    items = job_reads.results(job.id, state, place)
    became = job_reads.became(job.id)
    names = labels.routes(one.dead.route_id for one in items.results if one.dead)
    context = {
        "job": job,
        "progress": progress(job),
        "became": became,
        "is_live": job.finished is None or became.live > 0,
        "standing": standing(job, counts.workers_alive(clock.now()).get("router", 0)),
        "is_open": job.state in (JobState.RUNNING, JobState.PAUSED),
        "tabs": _tabs(job, state),
        "items": [(one, names.get(one.dead.route_id) if one.dead else None) for one in items.results],
        "next": items.next,
        "outcome": outcome if state else "",
        "at_start": place == job_reads.START,
    }
    if request.headers.get("HX-Request"):
        return _changed(request, job, context)
    chosen = _chosen(job.filter)
    context |= {"choice": filter_words.members(chosen), "named": len(chosen.work), "list_query": filter_words.query(chosen)}
    return show(request, "console/jobs/job.html", f"Job {job.id}", **context, **_may(request, job))


def _changed(request: HttpRequest, job: JobRow, context: dict[str, Any]) -> HttpResponse:
    """The live part; the whole page again where its buttons are not the right ones any more (`was` is the state that it knows)."""
    ended = not context["is_live"]
    response = render(request, "console/jobs/job_live.html", context, status=STOP_POLLING if ended else None)
    if ended or request.GET.get("was") != job.state.value:
        response.headers["HX-Refresh"] = "true"
    return response


def job_or_404(job_id: int) -> JobRow:
    job = jobs.find(job_id)
    if job is None:
        raise Http404(f"there is no job {job_id}")
    return job


def _tabs(job: JobRow, chosen: ItemState | None) -> list[tuple[str, str, int, bool]]:
    """(value, title, items, whether it is shown) of each outcome that there is."""
    numbers = {one: getattr(job, one.value) for one in ItemState}
    tabs = [("", "all", job.total, chosen is None)]
    return tabs + [(one.value, one.value, number, one is chosen) for one, number in numbers.items() if number or one is chosen]


def _may(request: HttpRequest, job: JobRow) -> dict[str, bool]:
    """What this person may do to the job now."""
    states = {
        "pause": (JobState.RUNNING,),
        "resume": (JobState.PAUSED,),
        "cancel": (JobState.RUNNING, JobState.PAUSED),
        "throttle": (JobState.RUNNING, JobState.PAUSED),
    }
    may = {f"may_{verb}": job.state in ok and request.user.has_perm(f"projection.{verb}_job") for verb, ok in states.items()}
    may["may_act"] = any(may.values())
    may["may_ask_again"] = (
        bool(job.refused) and job.finished is not None and request.user.has_perm(f"projection.{job.kind}_workitem")
    )
    return may


@action("projection.pause_job")
def pause(request: HttpRequest, job_id: int) -> HttpResponse:
    return _change(request, job_id, bulk_jobs.pause(job_id, actor=actor_of(request), reason=_reason(request)), "Job paused.")


@action("projection.resume_job")
def resume(request: HttpRequest, job_id: int) -> HttpResponse:
    return _change(request, job_id, bulk_jobs.resume(job_id, actor=actor_of(request), reason=_reason(request)), "Job resumed.")


@action("projection.cancel_job")
def cancel(request: HttpRequest, job_id: int) -> HttpResponse:
    reason = reason_of(request, "The job was not cancelled")
    if reason is None:
        return _to_job(request, job_id)
    done = "Job cancelled. What it already did remains."
    return _change(request, job_id, bulk_jobs.cancel(job_id, actor=actor_of(request), reason=reason), done)


@action("projection.throttle_job")
def throttle(request: HttpRequest, job_id: int) -> HttpResponse:
    try:
        rate = rate_of(request.POST.get("rate", "").strip())
        answer = bulk_jobs.throttle(job_id, rate, actor=actor_of(request), reason=_reason(request))
    except ValueError:
        messages.error(request, "The rate was not changed: enter a whole number of items per second; 0 means no limit.")
        return _to_job(request, job_id)
    return _change(request, job_id, answer, "The new rate applies from the next step.")


def rate_of(text: str) -> int:
    """Items a second; -1 for what is no whole number."""
    return int(text) if text.isascii() and text.isdecimal() else -1


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:500]


def _change(request: HttpRequest, job_id: int, answer: JobRow | Refused, done: str) -> HttpResponse:
    if isinstance(answer, Refused) and answer.code == "not_found":
        raise Http404(answer.reason)
    if isinstance(answer, Refused):
        messages.warning(request, f"Nothing was changed: {answer.reason}.")
    else:
        messages.success(request, done)
    return _to_job(request, job_id)


def _to_job(request: HttpRequest, job_id: int) -> HttpResponse:
    return back(request, "admin:job", job_id)


URLS: Final[Urls] = (
    ("replays/", listing, "replays"),
    ("replays/<int:job_id>/", detail, "job"),
    ("replays/<int:job_id>/pause/", pause, "pause_job"),
    ("replays/<int:job_id>/resume/", resume, "resume_job"),
    ("replays/<int:job_id>/cancel/", cancel, "cancel_job"),
    ("replays/<int:job_id>/throttle/", throttle, "throttle_job"),
)
