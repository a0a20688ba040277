"""Packs: install, upgrade, disable, enable, remove. Each is one transaction (or joins its caller's) under the namespace's lock.

An installed pack is a row with an incarnation of its own: a class under a name, by default the class's own. An upgrade is a new row
of the same name: endpoints move to it, and each current route gets a new version for it, so that new events make new projections
while pending work keeps its scope; duplicates stay known, because delivery keys are made from the pack's name.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectors import audit_log, pack
from connectors.configuration import routes
from connectors.configuration.change import ConfigurationRefused, NotFound, known_names, lock_namespace, one_unit
from connectors.configuration.live_packs import live_pack, required_pack
from connectors.configuration.pausing import inherited
from connectors.configuration.values import name as pack_name
from connectors.models import Endpoint, Pack, Receipt
from connectors.states import EndpointState, PackState
from projection.database import clock
from projection.states import ReceiptState


class InstallationRefused(ConfigurationRefused):
    """The pack cannot be installed, upgraded or removed now; the message says why and what to do first."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """An upgrade: the new row, the one it replaced, how many endpoints moved and the routes that got a new version."""

    pack: Pack
    replaced: Pack
    endpoints_moved: int
    routes: tuple[str, ...]


def pack_class(name: str) -> type[pack.Pack]:
    """The code of a pack. Raises NotFound, naming the packs of this process."""
    found = pack.find(name)
    if found is None:
        raise NotFound(
            f"there is no pack {name!r}; {known_names(name, sorted(pack.registered()))} (add others through HEADRACE_APPS)"
        )
    return found


@one_unit
def install(
    namespace: str,
    name: str,
    *,
    actor: str,
    reason: str = "",
    class_name: str | None = None,
    version: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Pack:
    """A new incarnation of a pack that is not installed; the namespace is made at its first use.

    `class_name`: the pack class, where the name is not the class's own: one class may be installed under several names. `version`
    None = the code's own; another one than the code's is refused. Raises NotFound for an unknown pack, InstallationRefused when it is
    installed already, has the name of another class, or its settings are wrong.
    """
    code_name = class_name or name
    _refuse_misleading(name, code_name)
    stored_settings = _checked_settings(name, code_name, version, settings or {})
    lock_namespace(namespace)
    present = live_pack(namespace, name)
    if present is not None:
        raise InstallationRefused(
            f"pack {name!r} is already {present.state} in namespace {namespace!r} (version {present.version}); use `packs upgrade`"
        )
    row = _insert(namespace, name, code_name, stored_settings)
    detail = {"class": code_name, "version": row.version, "id": row.id}
    audit_log.record(actor, "pack.install", f"{namespace}/{name}", reason, detail=detail)
    return row


@one_unit
def upgrade(
    namespace: str,
    name: str,
    *,
    actor: str,
    reason: str = "",
    version: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Upgraded:
    """Replace the installed pack by a new incarnation of the current code; `settings` None keeps the stored ones.

    Endpoints keep their URL, secrets and receipts; a disabled or paused pack stays so. Raises NotFound, InstallationRefused.
    """
    lock_namespace(namespace)
    old = _locked(namespace, name)
    kept = _checked_settings(name, old.code_name, version, json.loads(old.settings) if settings is None else settings)
    new = _insert(namespace, name, old.code_name, kept, like=old)
    Pack.objects.filter(id=old.id).update(state=PackState.REMOVED, removed_at=clock.now())
    moved = Endpoint.objects.filter(pack_id=old.id).update(pack_id=new.id)
    followers = [facts for facts in routes.all_current(namespace) if facts.pack_id == old.id]
    for facts in followers:
        routes.republish(facts, new, actor=actor, reason=f"upgrade of pack {name}")
    keys = tuple(facts.key for facts in followers)
    audit_log.record(
        actor,
        "pack.upgrade",
        f"{namespace}/{name}",
        reason,
        detail={"from": old.version, "to": new.version, "id": new.id, "endpoints": moved, "routes": list(keys)},
    )
    return Upgraded(new, old, moved, keys)


@one_unit
def configure(namespace: str, name: str, settings: Mapping[str, Any], *, actor: str, reason: str = "") -> bool:
    """Give the installed pack other settings, in place; what is received from then on is read by them. False = they are the same.

    Raises NotFound, InstallationRefused.
    """
    lock_namespace(namespace)
    row = _locked(namespace, name)
    text = _checked_settings(name, row.code_name, None, settings)
    if json.loads(row.settings) == json.loads(text):
        return False
    Pack.objects.filter(id=row.id).update(settings=text)
    audit_log.record(actor, "pack.configure", f"{namespace}/{name}", reason, detail={"settings": json.loads(text)})
    return True


@one_unit
def disable(namespace: str, name: str, *, actor: str, reason: str = "", discard: bool = False) -> bool:
    """Take no more deliveries: they are answered 503 (the provider tries again), or 410 with `discard`. False = was so already."""
    return _set_state(namespace, name, PackState.DISABLED, discard, actor=actor, action="pack.disable", reason=reason)


@one_unit
def enable(namespace: str, name: str, *, actor: str, reason: str = "") -> bool:
    """Take deliveries again. False = it did already."""
    return _set_state(namespace, name, PackState.INSTALLED, False, actor=actor, action="pack.enable", reason=reason)


@one_unit
def remove(namespace: str, name: str, *, actor: str, reason: str = "") -> Pack:
    """Take the pack out: its endpoints answer 404, its current routes are retired; facts stay, pending work still runs.

    Refused while receipts of it wait for the router: they would wait for ever. Raises NotFound, InstallationRefused.
    """
    lock_namespace(namespace)
    row = _locked(namespace, name)
    waiting = Receipt.objects.filter(state=ReceiptState.PENDING, namespace=namespace, pack_id=row.id).count()
    if waiting:
        raise InstallationRefused(
            f"pack {name!r} has {waiting} receipts that are not routed yet; disable it, wait for the router to finish, then remove it"
        )
    Pack.objects.filter(id=row.id).update(state=PackState.REMOVED, removed_at=clock.now())
    Endpoint.objects.filter(pack_id=row.id).update(state=EndpointState.REMOVED)
    for facts in routes.all_current(namespace):
        if facts.pack_id == row.id:
            routes.retire(namespace, facts.key, actor=actor, reason=f"removal of pack {name}")
    audit_log.record(actor, "pack.remove", f"{namespace}/{name}", reason, detail={"version": row.version, "id": row.id})
    row.refresh_from_db()
    return row


def _locked(namespace: str, name: str) -> Pack:
    return Pack.objects.select_for_update().get(id=required_pack(namespace, name).id)


def _refuse_misleading(name: str, code_name: str) -> None:
    """Raises InstallationRefused for an install that is called like another class, NotFound for a class that is not there."""
    try:
        pack_name(name)
    except ValueError as error:
        raise InstallationRefused(f"the name of a pack: {error}") from None
    if name != code_name and pack.find(name) is not None:
        raise InstallationRefused(
            f"{name!r} is the name of another pack class; choose another name for this install of {code_name!r}"
        )
    if name == code_name and pack.find(name) is None:
        known = ", ".join(sorted(pack.registered())) or "none"
        raise NotFound(
            f"there is no pack class {name!r}; known: {known} (add others through HEADRACE_APPS). To install one of them under the "
            f"name {name!r}, give its class (--class, or class = in the file)"
        )


def _checked_settings(name: str, code_name: str, version: str | None, settings: Mapping[str, Any]) -> str:
    """JSON text of settings that the pack's code accepts. Raises NotFound, InstallationRefused."""
    code = pack_class(code_name)
    if version is not None and version != code.version:
        raise InstallationRefused(
            f"pack {name!r} is version {code.version} here, not {version}; install the code of version {version} first"
        )
    try:
        text = json.dumps(dict(settings), sort_keys=True, ensure_ascii=False, allow_nan=False)
        code(json.loads(text))
    except (TypeError, ValueError) as error:
        raise InstallationRefused(f"settings of pack {name!r} are refused: {error}") from None
    return text


def _insert(namespace: str, name: str, code_name: str, settings: str, *, like: Pack | None = None) -> Pack:
    return Pack.objects.create(
        namespace=namespace,
        name=name,
        class_name="" if code_name == name else code_name,
        version=pack_class(code_name).version,
        incarnation=str(uuid.uuid4()),
        state=like.state if like else PackState.INSTALLED,
        discard_when_disabled=like.discard_when_disabled if like else False,
        **inherited(like),
        settings=settings,
        installed_at=clock.now(),
    )


def _set_state(namespace: str, name: str, state: PackState, discard: bool, *, actor: str, action: str, reason: str) -> bool:
    lock_namespace(namespace)
    row = _locked(namespace, name)
    if row.state == state and row.discard_when_disabled == discard:
        return False
    Pack.objects.filter(id=row.id).update(state=state, discard_when_disabled=discard)
    audit_log.record(actor, action, f"{namespace}/{name}", reason, detail={"discard": discard})
    return True
