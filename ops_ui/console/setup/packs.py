"""Packs: what is installed with its endpoints and routes, what could be, and the verbs over them."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse

from connectors import pack
from connectors.configuration import packs
from connectors.configuration.change import DEFAULT_NAMESPACE
from connectors.configuration.export import members_toml
from connectors.configuration.packs import InstallationRefused, Upgraded
from connectors.configuration.values import slug
from connectors.models import Endpoint, Namespace, Pack, Route
from connectors.states import LIVE_PACK_STATES, EndpointState, PackState
from ops_ui.console.actions import REASON_CHARACTERS, action, actor_of, reason_of
from ops_ui.console.base import navigation
from ops_ui.console.lists import exports
from ops_ui.console.lists.exports import Export
from ops_ui.console.pages import Urls, page, show
from ops_ui.console.setup import configuring, endpoint_reads, export
from ops_ui.console.setup.endpoint_reads import EndpointRow
from projection.database import clock

SHOWN: Final = 200
VERBS: Final = ("upgrade", "disable", "enable", "remove")
LARGEST_SETTINGS: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class PackRow:
    """An installed pack with what hangs on it. `code` is the version that this process has; None: it has none."""

    pack: Pack
    endpoints: tuple[EndpointRow, ...]
    routes: tuple[tuple[int, str], ...]
    code: str | None
    settings: str
    """As TOML; empty where there are none, or none that TOML can say."""


@page(navigation.PACKS)
def listing(request: HttpRequest) -> HttpResponseBase:
    """Four queries of configuration size."""
    now = clock.now()
    packs = list(Pack.objects.filter(state__in=LIVE_PACK_STATES).order_by("namespace", "name", "-id")[:SHOWN])
    ids = [one.id for one in packs]
    ends: dict[int, list[EndpointRow]] = {}
    for endpoint in Endpoint.objects.filter(pack_id__in=ids).exclude(state=EndpointState.REMOVED).order_by("slug", "id"):
        ends.setdefault(endpoint.pack_id, []).append(endpoint_reads.row(endpoint, now))
    keys: dict[int, list[tuple[int, str]]] = {}
    current = Route.objects.filter(pack_id__in=ids, is_current=True, deleted_at=None).order_by("route_key", "id")
    for row_id, pack_id, key in current.values_list("id", "pack_id", "route_key"):
        keys.setdefault(pack_id, []).append((row_id, key))
    known = pack.registered()
    rows = [_row(one, ends, keys, known) for one in packs]
    wanted = exports.requested(request)
    if wanted is not None:
        return exports.answer(request, Export("packs", exports.whole(rows), export.packs), wanted)
    context = {
        "packs": rows,
        "available": [(name, code.version, _about(code)) for name, code in sorted(known.items())],
        "namespaces": list(Namespace.objects.order_by("name").values_list("name", flat=True)[:SHOWN]) or [DEFAULT_NAMESPACE],
        "locked": configuring.lock_sentence(),
        "may_configure": configuring.may_change(request, "connectors.change_pack"),
        "may_install": configuring.may_change(request, "connectors.install_pack"),
        "may_add_endpoint": configuring.may_change(request, "connectors.add_endpoint"),
        **{f"may_{verb}": configuring.may_change(request, f"connectors.{verb}_pack") for verb in VERBS},
    }
    return show(request, "console/setup/packs.html", "Packs", **context)


def _row(
    row: Pack, ends: dict[int, list[EndpointRow]], keys: dict[int, list[tuple[int, str]]], known: dict[str, type[pack.Pack]]
) -> PackRow:
    code = known.get(row.code_name)
    return PackRow(
        row, tuple(ends.get(row.id, ())), tuple(keys.get(row.id, ())), code.version if code else None, _settings(row.settings)
    )


def _settings(text: str) -> str:
    try:
        return members_toml(json.loads(text or "{}"))
    except (TypeError, ValueError, AttributeError):
        return ""


def _about(code: type[pack.Pack]) -> str:
    """The first sentence of its module, for whoever has to choose."""
    text = (getattr(sys.modules.get(code.__module__), "__doc__", "") or "").strip().splitlines()
    return text[0] if text else ""


@action("connectors.install_pack")
def install(request: HttpRequest) -> HttpResponse:
    row = configuring.attempt(request, "Nothing was installed", partial(_install, request))
    if row is not None:
        messages.success(request, f"Installed {row}. Next, create an endpoint and publish a route.")
    return _back()


def _install(request: HttpRequest) -> Pack:
    namespace = request.POST.get("namespace", "").strip()
    try:
        slug(namespace)
    except ValueError as error:
        raise InstallationRefused(f"namespace: {error}") from None
    settings = _typed_settings(request)
    class_name = request.POST.get("class", "")
    return packs.install(
        namespace,
        request.POST.get("name", "").strip() or class_name,
        actor=actor_of(request),
        reason=_reason(request),
        class_name=class_name or None,
        settings=settings,
    )


def _typed_settings(request: HttpRequest) -> dict[str, Any]:
    """Raises InstallationRefused for what is not TOML."""
    text = request.POST.get("settings", "")
    if len(text) > LARGEST_SETTINGS:
        raise InstallationRefused(f"the settings have {len(text)} characters; the limit is {LARGEST_SETTINGS}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InstallationRefused(f"the settings are not valid TOML: {error}") from None


@action("connectors.upgrade_pack")
def upgrade(request: HttpRequest, pack_id: int) -> HttpResponse:
    """A new incarnation by the code of this process."""

    def told(done: Upgraded) -> str:
        moved = f"{len(done.routes)} routes got a new version, {done.endpoints_moved} endpoints were moved"
        return f"Upgraded {done.pack.name} {done.replaced.version} → {done.pack.version}; {moved}."

    return _verb(request, pack_id, "Nothing was upgraded", packs.upgrade, told, _reason(request))


@action("connectors.change_pack")
def configure(request: HttpRequest, pack_id: int) -> HttpResponse:
    """Other settings, in place."""
    reason = reason_of(request, "Nothing was changed")

    def change(namespace: str, name: str, *, actor: str, reason: str) -> bool:
        return packs.configure(namespace, name, _typed_settings(request), actor=actor, reason=reason)

    def told(changed: bool) -> str:
        return "Saved. New deliveries are read with these settings." if changed else "No change: the settings are the same."

    return _verb(request, pack_id, "Nothing was changed", change, told, reason)


@action("connectors.disable_pack")
def disable(request: HttpRequest, pack_id: int) -> HttpResponse:
    """Takes no more deliveries: 503, or 410 with `discard`."""
    discard = request.POST.get("discard") == "1"
    reason = reason_of(request, "Nothing was disabled")
    answer = "410" if discard else "503"

    def told(changed: bool) -> str:
        return f"Disabled. Deliveries get {answer}." if changed else "Nothing changed: the pack is already disabled."

    return _verb(request, pack_id, "Nothing was disabled", partial(packs.disable, discard=discard), told, reason)


@action("connectors.enable_pack")
def enable(request: HttpRequest, pack_id: int) -> HttpResponse:
    def told(changed: bool) -> str:
        return "Enabled. Deliveries are accepted again." if changed else "No change: the pack already accepts deliveries."

    return _verb(request, pack_id, "Nothing was enabled", packs.enable, told, _reason(request))


@action("connectors.remove_pack")
def remove(request: HttpRequest, pack_id: int) -> HttpResponse:
    """Takes the pack out: endpoints answer 404, routes are retired."""

    def told(row: Pack) -> str:
        return f"Removed {row}. Its endpoints answer 404 and its routes are retired; existing work continues."

    return _verb(request, pack_id, "Nothing was removed", packs.remove, told, reason_of(request, "Nothing was removed"))


def _verb(  # noqa: PLR0917  # what the verbs above differ in, in the order of a sentence
    request: HttpRequest, pack_id: int, undone: str, verb: Callable[..., Any], told: Callable[[Any], str], reason: str | None
) -> HttpResponse:
    """The verb on the pack that the page showed; `reason` None: it was needed, and a message has said so."""
    row = get_object_or_404(Pack, id=pack_id)
    if reason is None:
        return _back()

    def change() -> Any:
        if row.state == PackState.REMOVED:
            raise InstallationRefused(f"{row} was upgraded or removed in the meantime; reload the page")
        return verb(row.namespace, row.name, actor=actor_of(request), reason=reason)

    done = configuring.attempt(request, undone, change)
    if done is not None:
        messages.success(request, told(done))
    return _back()


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:REASON_CHARACTERS]


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("admin:packs"))


URLS: Final[Urls] = (
    ("packs/", listing, "packs"),
    ("packs/install/", install, "install_pack"),
    ("packs/<int:pack_id>/upgrade/", upgrade, "upgrade_pack"),
    ("packs/<int:pack_id>/settings/", configure, "configure_pack"),
    ("packs/<int:pack_id>/disable/", disable, "disable_pack"),
    ("packs/<int:pack_id>/enable/", enable, "enable_pack"),
    ("packs/<int:pack_id>/remove/", remove, "remove_pack"),
)
