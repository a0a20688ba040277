"""What administrators do to endpoints: create, change, rotate, disable, enable, remove, reverify, send a test delivery."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters

from connectors import durations
from connectors.configuration import endpoints
from connectors.configuration.endpoints import EndpointRefused, Rotated
from connectors.configuration.errors import BadConfiguration
from connectors.delivery import Outcome
from connectors.models import Endpoint, Pack
from connectors.operations import test_delivery
from connectors.operations.reverify import Reverified, reverify
from ops_ui.console.actions import REASON_CHARACTERS, action, actor_of, back, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.base.form_fields import typed
from ops_ui.console.pages import Urls
from ops_ui.console.setup import endpoint_forms
from ops_ui.console.setup import endpoints as pages
from ops_ui.console.setup.configuring import attempt
from projection.database import clock

REASONS_SHOWN: Final = 5


def optional_reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:REASON_CHARACTERS]


@sensitive_post_parameters("secret")
@action("connectors.add_endpoint")
def create(request: HttpRequest) -> HttpResponse:
    """A new ingress URL; then the page that shows its secret, this once, and waits for the first delivery."""
    request.here = navigation.ENDPOINTS  # type: ignore[attr-defined]  # read by the navigation, as pages set it
    made = attempt(request, "No endpoint was created", partial(_create, request))
    if isinstance(made, list):
        return pages.new_form(request, typed(request.POST), made)
    if made is None:
        return pages.new_form(request, typed(request.POST))
    endpoint, secret = made
    messages.success(request, f"Endpoint {endpoint.slug} created; it accepts deliveries.")
    return pages.onboarding_page(request, endpoint, secret)


def _create(request: HttpRequest) -> tuple[Endpoint, str] | list[str]:
    """The endpoint, and its secret where it was made here; a list: the sentences about the fields that are wrong."""
    pack = endpoint_forms.pack_named(request.POST.get("pack", ""))
    secret, is_fresh = endpoint_forms.secret(request.POST, endpoints.scheme_of(pack, ""))
    try:
        draft = endpoint_forms.draft(request.POST, pack.name, request.POST.get("slug", "").strip(), (secret,) if secret else ())
    except BadConfiguration as bad:
        return bad.problems
    endpoint = endpoints.create(pack.namespace, draft, actor=actor_of(request), reason=optional_reason(request))
    return endpoint, secret.value if secret and is_fresh else ""


@action("connectors.change_endpoint")
def change(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Other settings; its secrets stay."""
    request.here = navigation.ENDPOINTS  # type: ignore[attr-defined]  # read by the navigation, as pages set it
    endpoint, pack = _found(endpoint_id)
    done = attempt(request, "Nothing was changed", partial(_change, request, endpoint, pack))
    if isinstance(done, list):
        return pages.detail_form(request, endpoint_id, typed(request.POST), done)
    if done is not None:
        messages.success(
            request, f"Changed: {'; '.join(done)}." if done else "Nothing changed: these settings are already in effect."
        )
    return HttpResponseRedirect(reverse("admin:endpoint", args=[endpoint_id]))


def _change(request: HttpRequest, endpoint: Endpoint, pack: Pack) -> tuple[str, ...] | list[str]:
    try:
        draft = endpoint_forms.draft(request.POST, pack.name, endpoint.slug, None, endpoint.signature_scheme)
    except BadConfiguration as bad:
        return bad.problems
    return endpoints.change(endpoint.namespace, draft, actor=actor_of(request), reason=optional_reason(request))


@action("connectors.change_endpoint")
def disable(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Takes no more deliveries: 503, or 410 with `discard`."""
    discard = request.POST.get("discard") == "1"

    def change(endpoint: Endpoint, reason: str) -> str:
        endpoints.disable(endpoint.namespace, endpoint.slug, actor=actor_of(request), reason=reason, discard=discard)
        return f"Disabled. Deliveries get {410 if discard else 503}."

    return _with_reason(request, endpoint_id, "Nothing was disabled", change)


@action("connectors.change_endpoint")
def enable(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    def change(endpoint: Endpoint, reason: str) -> str:
        endpoints.enable(endpoint.namespace, endpoint.slug, actor=actor_of(request), reason=reason)
        return "Enabled. Deliveries are accepted again."

    return _with_reason(request, endpoint_id, "Nothing was enabled", change)


@action("connectors.change_endpoint")
def remove(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Takes it out: 404 from now on, and its secrets are gone."""

    def change(endpoint: Endpoint, reason: str) -> str:
        endpoints.remove(endpoint.namespace, endpoint.slug, actor=actor_of(request), reason=reason)
        return f"Removed {endpoint.slug}. It answers 404; what it received is still processed."

    return _with_reason(request, endpoint_id, "Nothing was removed", change)


def _with_reason(request: HttpRequest, endpoint_id: int, undone: str, change: Callable[[Endpoint, str], str]) -> HttpResponse:
    """A change that needs a reason; what it answers is the message."""
    endpoint, _ = _found(endpoint_id)
    reason = reason_of(request, undone)
    done = attempt(request, undone, partial(change, endpoint, reason)) if reason else None
    if done is not None:
        messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:endpoint", args=[endpoint_id]))


@sensitive_post_parameters("secret")
@action("connectors.rotate_endpoint")
def rotate(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """A new secret in force; the one before lives on for the overlap, or stops at once (which needs a reason)."""
    request.here = navigation.ENDPOINTS  # type: ignore[attr-defined]  # read by the navigation, as pages set it
    endpoint, pack = _found(endpoint_id)
    done = attempt(request, "Nothing was rotated", partial(_rotate, request, endpoint, pack))
    if done is None:
        return HttpResponseRedirect(reverse("admin:endpoint", args=[endpoint_id]))
    rotated, secret = done
    stopped = f"; older ones revoked immediately: {rotated.stopped_at_once}" if rotated.stopped_at_once else ""
    old = (
        f"the previous one is valid until {rotated.old_ends_at:%Y-%m-%d %H:%M} UTC"
        if rotated.old_ends_at
        else "no older one is valid"
    )
    messages.success(request, f"The new secret is active; {old}{stopped}.")
    return pages.onboarding_page(request, Endpoint.objects.get(id=endpoint_id), secret)


def _rotate(request: HttpRequest, endpoint: Endpoint, pack: Pack) -> tuple[Rotated, str]:
    try:
        overlap = timedelta(seconds=durations.seconds(request.POST.get("overlap", "").strip() or "24h"))
    except ValueError as error:
        raise EndpointRefused(f"overlap: {error}") from None
    if not overlap and not optional_reason(request):
        raise EndpointRefused("without an overlap the old secret is revoked immediately; enter a reason")
    secret, is_fresh = endpoint_forms.secret(request.POST, endpoints.scheme_of(pack, endpoint.signature_scheme))
    if secret is None:
        raise EndpointRefused(f"pack {pack.name!r} does not check signatures, so there is no secret to rotate")
    rotated = endpoints.rotate(
        endpoint.namespace,
        endpoint.slug,
        secret,
        actor=actor_of(request),
        reason=optional_reason(request),
        overlap=overlap,
        seen=request.POST.get("mark", ""),
    )
    return rotated, secret.value if is_fresh else ""


@action("connectors.reverify_endpoint")
def admit_kept(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Admits what is kept apart and verifies by the present secrets."""
    endpoint, _ = _found(endpoint_id)
    reason = reason_of(request, "Nothing was accepted")
    if reason:
        done = attempt(request, "Nothing was accepted", partial(_reverify, request, endpoint, reason), configures=False)
        if done is not None:
            _tell(request, done)
    return back(request, "admin:endpoint", endpoint_id)


def _reverify(request: HttpRequest, endpoint: Endpoint, reason: str) -> Reverified:
    return reverify(endpoints.facts(endpoint.namespace, endpoint.slug), actor=actor_of(request), reason=reason)


def _tell(request: HttpRequest, done: Reverified) -> None:
    if done.admitted:
        messages.success(request, f"Accepted {len(done.admitted)} of the kept deliveries; the router processes them.")
    for one in done.refused[:REASONS_SHOWN]:
        messages.warning(request, f"Delivery {one.unverified_id} still fails its signature check: {one.reason}")
    if len(done.refused) > REASONS_SHOWN:
        messages.warning(request, f"{len(done.refused) - REASONS_SHOWN} more still fail the check.")
    if done.loss:
        messages.warning(request, done.loss)
    if not done.admitted and not done.refused:
        messages.info(request, "This endpoint has no kept deliveries to verify again.")


@action("connectors.try_endpoint")
def try_endpoint(request: HttpRequest, endpoint_id: int) -> HttpResponse:
    """Sends a test delivery; then the page that follows it."""
    endpoint, _ = _found(endpoint_id)
    moment = clock.now()
    outcome = attempt(request, "No test delivery was sent", partial(_send, request, endpoint), configures=False)
    if outcome is None:
        return HttpResponseRedirect(reverse("admin:endpoint", args=[endpoint_id]))
    if outcome.code in ("accepted", "spooled"):
        messages.success(request, "Test delivery sent. Headrace processes it like any other delivery.")
    elif outcome.code == "duplicate":
        messages.warning(
            request, f"Duplicate of receipt {outcome.receipt_id}. Change its ids, or reload the page for a new sample."
        )
    else:
        messages.warning(request, f"The endpoint answered {outcome.status} {outcome.code}: {outcome.message}")
    to = reverse("admin:connect_endpoint", args=[endpoint_id])
    return HttpResponseRedirect(f"{to}?{urlencode({'since': moment.isoformat()})}")


def _send(request: HttpRequest, endpoint: Endpoint) -> Outcome:
    headers = endpoint_forms.headers(request.POST.get("headers", ""))
    body = request.POST.get("body", "").replace("\r\n", "\n")
    return test_delivery.send(
        endpoints.facts(endpoint.namespace, endpoint.slug), headers, body, actor=actor_of(request), reason=optional_reason(request)
    )


def _found(endpoint_id: int) -> tuple[Endpoint, Pack]:
    endpoint = get_object_or_404(Endpoint, id=endpoint_id)
    return endpoint, get_object_or_404(Pack, id=endpoint.pack_id)


URLS: Final[Urls] = (
    ("endpoints/create/", create, "create_endpoint"),
    ("endpoints/<int:endpoint_id>/change/", change, "change_endpoint"),
    ("endpoints/<int:endpoint_id>/rotate/", rotate, "rotate_endpoint"),
    ("endpoints/<int:endpoint_id>/disable/", disable, "disable_endpoint"),
    ("endpoints/<int:endpoint_id>/enable/", enable, "enable_endpoint"),
    ("endpoints/<int:endpoint_id>/remove/", remove, "remove_endpoint"),
    ("endpoints/<int:endpoint_id>/reverify/", admit_kept, "reverify_endpoint"),
    ("endpoints/<int:endpoint_id>/try/", try_endpoint, "try_endpoint"),
)
