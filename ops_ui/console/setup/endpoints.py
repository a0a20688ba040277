"""Endpoints: the ingress URLs, one page each, and the page that watches the first delivery arrive. Secrets are never shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.vary import vary_on_headers

from connectors.configuration import endpoints
from connectors.delivery import SignatureScheme
from connectors.ingress import endpoint_facts
from connectors.models import Endpoint, Pack
from connectors.operations import test_delivery
from connectors.operations.test_delivery import TrialRefused
from connectors.states import EndpointState
from ops_ui.console.base import navigation
from ops_ui.console.base.form_fields import Field, with_problems
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.setup import configuring, endpoint_forms, endpoint_reads, export, onboarding
from projection.database import clock

SHOWN: Final = 500
STOP_POLLING: Final = 286
"""htmx asks no more after an answer of this status."""


@page(navigation.ENDPOINTS)
def listing(request: HttpRequest) -> HttpResponseBase:
    """Every endpoint but removed ones. Two queries of configuration size."""
    now = clock.now()
    found = list(Endpoint.objects.exclude(state=EndpointState.REMOVED).order_by("namespace", "slug", "id")[:SHOWN])
    packs = {pack.id: pack for pack in Pack.objects.filter(id__in={one.pack_id for one in found})}
    rows = [(endpoint_reads.row(one, now), packs.get(one.pack_id)) for one in found]
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("endpoints", exports.whole(rows), export.endpoints), wanted)
    context = {
        "rows": rows,
        "may_create": configuring.may_change(request, "connectors.add_endpoint"),
        "locked": configuring.lock_sentence(),
    }
    return show(request, "console/setup/endpoints.html", "Endpoints", **context)


@page(navigation.ENDPOINTS)
def new(request: HttpRequest) -> HttpResponseBase:
    """The form of a new endpoint; `pack` chooses one in advance."""
    return new_form(request, {"pack": request.GET.get("pack", "")})


def new_form(request: HttpRequest, values: dict[str, str], problems: list[str] | None = None) -> HttpResponse:
    """The form with what was typed, and what is wrong with it."""
    packs = [f"{row.namespace}/{row.name}" for row in endpoint_forms.live_everywhere()]
    first = (
        Field(
            "pack",
            "Pack",
            "whose deliveries the endpoint accepts",
            "choice",
            choices=tuple((one, one) for one in packs),
            required=True,
        ),
        Field("slug", "Slug", "last part of the URL; use a-z, 0-9, - and _", placeholder="crm", required=True),
    )
    fields = [replace(field, value=values.get(field.name, field.value)) for field in (*first, *endpoint_forms.SETTINGS)]
    shown, left = with_problems(fields, problems or [])
    context = {
        "fields": shown,
        "problems": left,
        "own": values.get("origin") == "own",
        "has_packs": bool(packs),
        "may_create": configuring.may_change(request, "connectors.add_endpoint"),
        "locked": configuring.lock_sentence(),
    }
    return show(request, "console/setup/endpoint_new.html", "New endpoint", **context)


@page(navigation.ENDPOINTS)
def detail(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    return detail_form(request, endpoint_id)


def detail_form(
    request: HttpRequest, endpoint_id: int, values: dict[str, str] | None = None, problems: list[str] | None = None
) -> HttpResponse:
    """The page of an endpoint; with `values`, what was typed into the form of its settings. At most nine queries."""
    endpoint = get_object_or_404(Endpoint, id=endpoint_id)
    pack = Pack.objects.filter(id=endpoint.pack_id).first()
    now = clock.now()
    typed = endpoint_forms.settings_of(endpoint) | (values or {})
    fields, left = with_problems(
        [replace(field, value=typed.get(field.name, "")) for field in endpoint_forms.SETTINGS], problems or []
    )
    is_removed = endpoint.state == EndpointState.REMOVED
    rights = ("change_endpoint", "rotate_endpoint")
    context = {
        "row": endpoint_reads.row(endpoint, now),
        "pack": pack,
        "scheme": scheme_of(pack, endpoint),
        "fields": fields,
        "settings": [(field.label, _said(field)) for field in fields],
        "problems": left,
        "kept": endpoint_reads.kept(endpoint.id, now),
        "receipts": endpoint_reads.newest_receipts(endpoint.id),
        "mark": endpoints.mark(endpoint),
        "locked": configuring.lock_sentence(),
        "trial": _trial(request, endpoint) if not is_removed else None,
        "may_reverify_endpoint": request.user.has_perm("connectors.reverify_endpoint"),
        **{f"may_{one}": not is_removed and configuring.may_change(request, f"connectors.{one}") for one in rights},
    }
    return show(request, "console/setup/endpoint.html", endpoint.slug, **context)


def _said(field: Field) -> str:
    """What a setting says, for people who may not change it."""
    return dict(field.choices).get(field.value, field.value) if field.choices else field.value


def scheme_of(pack: Pack | None, endpoint: Endpoint | None) -> SignatureScheme | None:
    """The signature scheme in force; None where no module of this process has the pack, or its settings are wrong."""
    if pack is None:
        return None
    try:
        return endpoints.scheme_of(pack, endpoint.signature_scheme if endpoint else "")
    except (*configuring.REFUSALS, ValueError):
        return None


def _trial(request: HttpRequest, endpoint: Endpoint) -> dict[str, Any] | None:
    """The form of a test delivery with a fresh sample, or why there is none; None: this person sends none."""
    if not request.user.has_perm("connectors.try_endpoint"):
        return None
    facts = endpoint_facts.load((endpoint.namespace, endpoint.slug))
    why = test_delivery.obstacle(facts) if facts is not None else "the pack is removed"
    if facts is None or why is not None:
        return {"obstacle": why}
    try:
        sample = test_delivery.sample_of(facts)
    except TrialRefused as refused:
        return {"headers": "content-type: application/json", "body": "{}", "note": str(refused)}
    return {"headers": "\n".join(f"{name}: {value}" for name, value in sample.headers.items()), "body": sample.text}


@page(navigation.ENDPOINTS)
@vary_on_headers("HX-Request")
def watching(request: HttpRequest, endpoint_id: int) -> HttpResponseBase:
    """The URL to paste, and how far the newest delivery has come; for htmx the part that changes."""
    endpoint = get_object_or_404(Endpoint.objects.exclude(state=EndpointState.REMOVED), id=endpoint_id)
    if request.headers.get("HX-Request"):
        context = _watched(endpoint, _since(request, endpoint))
        status = STOP_POLLING if context["watch"].is_over else None
        return render(request, "console/setup/onboarding_live.html", context, status=status)
    return onboarding_page(request, endpoint)


def onboarding_page(request: HttpRequest, endpoint: Endpoint, secret: str = "") -> HttpResponse:
    """`secret`: the one that was made for this request, shown this once."""
    pack = Pack.objects.filter(id=endpoint.pack_id).first()
    context = {
        "row": endpoint_reads.row(endpoint, clock.now()),
        "pack": pack,
        "scheme": scheme_of(pack, endpoint),
        "secret": secret,
        "may_try": request.user.has_perm("connectors.try_endpoint"),
        **_watched(endpoint, _since(request, endpoint)),
    }
    return show(request, "console/setup/onboarding.html", f"Connect {endpoint.slug}", **context)


def _watched(endpoint: Endpoint, since: datetime) -> dict[str, Any]:
    now = clock.now()
    return {"endpoint": endpoint, "watch": onboarding.watch(onboarding.read(endpoint, since, now)), "now": now}


def _since(request: HttpRequest, endpoint: Endpoint) -> datetime:
    """Since when deliveries count: `since` of the URL, else the newest secret."""
    try:
        asked = datetime.fromisoformat(request.GET.get("since", ""))
        return asked.astimezone(UTC) if asked.tzinfo else asked.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return endpoint.rotated_at or endpoint.created_at


URLS: Final[Urls] = (
    ("endpoints/", listing, "endpoints"),
    ("endpoints/new/", new, "new_endpoint"),
    ("endpoints/<int:endpoint_id>/", detail, "endpoint"),
    ("endpoints/<int:endpoint_id>/connect/", watching, "connect_endpoint"),
)
