"""Routes: every version, its page, and publishing: a form or a text, tried against stored events first."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse

from connectors.configuration import routes
from connectors.configuration.apply import apply, draft_of
from connectors.configuration.errors import BadConfiguration
from connectors.configuration.export import as_toml, route_section
from connectors.configuration.live_packs import live_pack
from connectors.configuration.routes import Published
from connectors.models import Route
from connectors.routing import dry_run
from ops_ui.console.actions import REASON_CHARACTERS, action, actor_of, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.base.form_fields import Field, filled, with_problems
from ops_ui.console.pages import Listing, Urls, page, show, show_list
from ops_ui.console.setup import configuring, endpoint_forms, route_forms
from ops_ui.console.setup.route_forms import OneRoute
from ops_ui.console.setup.route_table import RouteTable, route_state
from projection.facts import RetryPolicy, RouteFacts, flow_name

PUBLISH: Final = "connectors.publish_route"
VERSIONS_SHOWN: Final = 50
SAMPLE: Final = """
[routes.contact]
pack = "hubspot"
on = ["contact.creation", "contact.propertyChange"]
kind = "contact.changed"
mode = "projection"
settle = "5s"
flow = "record_table"
""".strip()
"""Shown in the empty field of a route as text."""


@page(navigation.ROUTES)
def listing(request: HttpRequest) -> HttpResponseBase:
    return show_list(
        request,
        Listing(
            title="Routes",
            rows=Route.objects.defer("snapshot"),
            filters=None,
            table=RouteTable,
            empty="No routes published. Deliveries are stored but not processed. Install a pack first, then publish a route.",
            next_page=navigation.PACKS,
            template="console/setup/routes.html",
        ),
        {"may_publish": configuring.may_change(request, PUBLISH), "locked": configuring.lock_sentence()},
    )


@page(navigation.ROUTES)
def detail(request: HttpRequest, route_id: int) -> HttpResponseBase:
    """One immutable version, and the other versions of its key."""
    row = get_object_or_404(Route, id=route_id)
    versions = Route.objects.filter(namespace=row.namespace, route_key=row.route_key).order_by("-version")[:VERSIONS_SHOWN]
    state = route_state(row)
    context: dict[str, Any] = {
        "route": row,
        "state": state,
        "kinds": json.loads(row.provider_kinds or "[]"),
        "masks": json.loads(row.masks or "[]"),
        "flow": flow_name(row.companion_pack, row.companion_flow),
        "retry": {**asdict(RetryPolicy()), **json.loads(row.retry_policy or "{}")},
        "limit": json.loads(row.rate_limit) if row.rate_limit else None,
        "versions": RouteTable(list(versions)),
        "text": _text(row),
        "may_publish": configuring.may_change(request, PUBLISH),
        "may_retire": row.is_current and not row.deleted_at and configuring.may_change(request, "connectors.retire_route"),
        "locked": configuring.lock_sentence(),
    }
    return show(request, "console/setup/route.html", f"{row.route_key} v{row.version}", **context)


def _text(row: Route) -> str:
    """The version as a configuration file says it; empty for a row whose snapshot this code cannot read."""
    try:
        section = route_section(RouteFacts.from_snapshot(row.snapshot))
    except ValueError:
        return ""
    return as_toml({"namespace": row.namespace, "packs": {}, "connections": {}, "routes": {row.route_key: section}})


@page(navigation.ROUTES)
def publishing(request: HttpRequest) -> HttpResponseBase:
    """The form of a new route, or of the next version of the one that `from` names; `as=text`: the same as a text."""
    asked = route_forms.fields(endpoint_forms.live_everywhere())
    number = request.GET.get("from", "")
    row = Route.objects.filter(id=int(number)).first() if number.isascii() and number.isdecimal() and len(number) < 19 else None
    text = ""
    if row is not None and row.snapshot:
        text = _text(row)
        asked = route_forms.with_route(asked, RouteFacts.from_snapshot(row.snapshot))
    as_text = request.GET.get("as") == "text"
    return _form(request, asked, text, as_text=as_text, origin=number if row else "")


def _form(
    request: HttpRequest,
    asked: tuple[Field, ...],
    text: str,
    *,
    as_text: bool,
    problems: list[str] | None = None,
    tried: dict[str, Any] | None = None,
    origin: str = "",
) -> HttpResponse:
    """The page of publishing; `tried`: what the dry run found."""
    context = {
        "fields": asked,
        "text": text,
        "as_text": as_text,
        "sample": SAMPLE,
        "problems": problems or [],
        "tried": tried,
        "origin": origin,
        "may_publish": configuring.may_change(request, PUBLISH),
        "locked": configuring.lock_sentence(),
    }
    return show(request, "console/setup/route_publish.html", "Publish a route", **context)


@action(PUBLISH)
def try_out(request: HttpRequest) -> HttpResponse:
    """A dry run: the same page with every problem, or with what the route would change and take. Nothing is written."""
    request.here = navigation.ROUTES  # type: ignore[attr-defined]  # read by the navigation, as pages set it
    as_text = request.POST.get("as") == "text"
    asked = route_forms.fields(endpoint_forms.live_everywhere())
    if not as_text:
        asked = filled(asked, request.POST)
    text = request.POST.get("text", "")
    try:
        if not as_text:
            text = route_forms.text_of_form(request.POST, asked)
        one = route_forms.read(text)
        asked = asked if not as_text else route_forms.with_route(asked, _facts(one))
        return _form(request, asked, text, as_text=as_text, tried=_tried(request, one))
    except configuring.REFUSALS as refused:
        problems = refused.problems if isinstance(refused, BadConfiguration) else str(refused).splitlines()
        shown, left = (asked, problems) if as_text else with_problems(asked, problems, route_forms.prefix_of(text))
        return _form(request, shown, text, as_text=as_text, problems=left)


def _facts(one: OneRoute) -> RouteFacts:
    """The route that would be published. Raises RouteRefused where its pack is not installed."""
    pack = live_pack(one.namespace, one.section.pack)
    if pack is None:
        raise routes.RouteRefused(f"pack {one.section.pack!r} is not installed in namespace {one.namespace!r}; install it first")
    return routes.facts_of(draft_of(one.key, one.section), pack)


def _tried(request: HttpRequest, one: OneRoute) -> dict[str, Any]:
    """What the product itself says of it (a transaction that is rolled back), and a look at the newest events."""
    report = apply(one.configuration, actor=actor_of(request), dry_run=True)
    facts = _facts(one)
    current = routes.all_current(one.namespace)
    trial = dry_run.against(facts, current, dry_run.read(one.namespace, facts.pack_name))
    before = next((each for each in current if each.key == one.key), None)
    most = max((each.events for each in trial.estimates), default=0)
    return {
        "one": one,
        "facts": facts,
        "before": before,
        "is_equal": not report.changes_something,
        "warnings": report.warnings,
        "changes": route_forms.changes(before, facts),
        "trial": trial,
        "estimates": [(each, each.settle == facts.settle_seconds, _width(each.executions, most)) for each in trial.estimates],
        "losing": [row for row in trial.kinds if row.took and not row.takes],
    }


def _width(part: int, whole: int) -> float:
    """Of a bar in a box of 100."""
    return round(100 * part / whole, 2) if whole else 0.0


@action(PUBLISH)
def publish(request: HttpRequest) -> HttpResponse:
    """Publishes the route of the text."""
    text = request.POST.get("text", "")
    done = configuring.attempt(request, "Nothing was published", partial(_publish, request, text))
    if done is None:
        request.here = navigation.ROUTES  # type: ignore[attr-defined]  # read by the navigation, as pages set it
        return _form(request, route_forms.fields(endpoint_forms.live_everywhere()), text, as_text=True)
    facts = done.route_facts
    if done.created:
        older = "script/manage repair routes events that had no route before"
        messages.success(request, f"Published {facts.key} v{facts.version}. It applies to new events; {older}.")
    else:
        messages.info(request, f"Nothing was published: {facts.key} v{facts.version} is identical.")
    for warning in done.warnings:
        messages.warning(request, warning)
    return HttpResponseRedirect(reverse("admin:route", args=[facts.id]))


def _publish(request: HttpRequest, text: str) -> Published:
    one = route_forms.read(text)
    draft = draft_of(one.key, one.section)
    reason = request.POST.get("reason", "").strip()[:REASON_CHARACTERS]
    return routes.publish(one.namespace, draft, actor=actor_of(request), reason=reason)


@action("connectors.retire_route")
def retire(request: HttpRequest, route_id: int) -> HttpResponse:
    """Retires the current version: no further event takes it, what it admitted goes on."""
    row = get_object_or_404(Route, id=route_id)
    reason = reason_of(request, "Nothing was retired")
    if reason:
        done = configuring.attempt(request, "Nothing was retired", partial(_retire, request, row, reason))
        if done is not None:
            messages.success(request, f"Retired {done.key} v{done.version}. It matches no new events; existing work continues.")
    return HttpResponseRedirect(reverse("admin:route", args=[route_id]))


def _retire(request: HttpRequest, row: Route, reason: str) -> RouteFacts:
    """Raises RouteRefused for a version that is not in force: whoever clicked has not seen the one that is."""
    if not row.is_current or row.deleted_at:
        raise routes.RouteRefused(f"{row.route_key} v{row.version} is no longer current; check the current version first")
    return routes.retire(row.namespace, row.route_key, actor=actor_of(request), reason=reason)


URLS: Final[Urls] = (
    ("routes/", listing, "routes"),
    ("routes/publish/", publishing, "publish_route"),
    ("routes/try/", try_out, "try_route"),
    ("routes/publish/now/", publish, "publish_route_now"),
    ("routes/<int:route_id>/", detail, "route"),
    ("routes/<int:route_id>/retire/", retire, "retire_route"),
)
