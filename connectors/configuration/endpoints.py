"""Endpoints: create, change, disable, remove, rotate their secrets, list. Each change is one transaction (or joins its caller's)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from connectors import audit_log, pack, secrets
from connectors.configuration import packs, stored_secrets
from connectors.configuration.change import ConfigurationRefused, NotFound, lock_namespace, one_unit
from connectors.configuration.live_packs import required_pack
from connectors.configuration.stored_secrets import Secret, SecretRefused
from connectors.ingress import endpoint_facts
from connectors.ingress.endpoint_facts import EndpointFacts, account_of
from connectors.ingress.limit_values import LIMIT_NAMES, EndpointLimits
from connectors.ingress.paths import ingress_path
from connectors.models import Endpoint, Pack
from connectors.states import EndpointState
from projection.database import clock

DEFAULT_OVERLAP: Final = timedelta(hours=24)
"""How long the old secret stays live in a rotation: a day covers the retries that providers sign with it."""
UNVERIFIED_WINDOW: Final = timedelta(hours=24)
"""How long after its creation and each rotation an endpoint keeps deliveries that do not verify (docs/protocol.md#unverified)."""
KEEP: Final = "keep"

Unverified = Literal["keep", "refuse"]


class EndpointRefused(ConfigurationRefused):
    """The endpoint cannot be as asked; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class EndpointDraft:
    """What an endpoint is to be. `secrets` None: leave the stored ones as they are (a new endpoint then has none)."""

    pack_name: str
    slug: str
    secrets: tuple[Secret, ...] | None = None
    public_url: str = ""
    signature: str = ""
    unverified: Unverified = "keep"
    account: str = ""
    limits: EndpointLimits = field(default_factory=EndpointLimits)


@dataclass(frozen=True, slots=True)
class EndpointLine:
    """An endpoint as lists show it: never a secret."""

    id: int
    namespace: str
    slug: str
    pack: str
    state: str
    path: str
    account: str
    public_url: str
    signature: str
    unverified: str
    unverified_until: datetime | None
    max_body_bytes: int | None
    limit: str | None
    concurrency: int | None
    spool: bool | None
    live_secrets: int
    rotated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Rotated:
    """A rotation: until when the old secret is live (None: there was none, or it stopped at once), how many stopped at once."""

    slug: str
    old_ends_at: datetime | None
    stopped_at_once: int


@one_unit
def create(namespace: str, draft: EndpointDraft, *, actor: str, reason: str = "") -> Endpoint:
    """A new ingress URL of an installed pack, `/ingress/<namespace>/<slug>`; one that was removed comes back.

    Raises NotFound for a pack that is not installed, EndpointRefused for a slug in use or a secret that is missing, SecretRefused.
    """
    lock_namespace(namespace)
    row = required_pack(namespace, draft.pack_name)
    present = _find(namespace, draft.slug)
    if present is not None and present.state != EndpointState.REMOVED:
        raise EndpointRefused(
            f"endpoint {draft.slug!r} already exists in namespace {namespace!r}; choose another slug, or rotate its secret"
        )
    values = draft.secrets or ()
    _check_account(row, draft)
    _check_secrets(row, draft, values)
    endpoint = present or Endpoint(namespace=namespace, slug=draft.slug)
    endpoint.created_at = clock.now()
    endpoint.pack_id = row.id
    endpoint.state, endpoint.discard_when_disabled = EndpointState.ENABLED, False
    endpoint.secrets = stored_secrets.stored(values) if values else ""
    endpoint.unverified_until = endpoint.created_at + UNVERIFIED_WINDOW
    _apply(endpoint, draft)
    endpoint.save()
    audit_log.record(actor, "endpoint.create", f"{namespace}/{draft.slug}", reason, detail={"pack": row.name})
    return endpoint


@one_unit
def change(namespace: str, draft: EndpointDraft, *, actor: str, reason: str = "") -> tuple[str, ...]:
    """Make an existing endpoint what the draft says; returns what differs, one `name: old → new` each (secrets without values).

    Other secrets than the stored ones take effect at once and open the window for unverified deliveries again; for an overlap list
    both, or rotate. Raises NotFound, EndpointRefused, SecretRefused.
    """
    lock_namespace(namespace)
    row = required_pack(namespace, draft.pack_name)
    endpoint = _locked(namespace, draft.slug)
    if endpoint.pack_id != row.id:
        raise EndpointRefused(f"endpoint {draft.slug!r} belongs to a pack other than {draft.pack_name!r}; choose another slug")
    _check_account(row, draft)
    _check_secrets(row, draft, stored_secrets.in_force(endpoint.secrets) if draft.secrets is None else draft.secrets)
    before = _settings(endpoint)
    _apply(endpoint, draft)
    changes = [f"{name}: {before[name]} → {value}" for name, value in _settings(endpoint).items() if before[name] != value]
    if draft.secrets is not None:
        text = stored_secrets.replaced(endpoint.secrets, draft.secrets)
        if text != endpoint.secrets:
            changes.append("secrets: replaced")
            _renew(endpoint, text, clock.now())
    if changes:
        endpoint.save()
        audit_log.record(actor, "endpoint.change", f"{namespace}/{draft.slug}", reason, detail={"changes": changes})
    return tuple(changes)


@one_unit
def rotate(
    namespace: str,
    slug: str,
    secret: Secret,
    *,
    actor: str,
    reason: str = "",
    overlap: timedelta = DEFAULT_OVERLAP,
    seen: str | None = None,
) -> Rotated:
    """Put a new secret in force; the one before stays live for `overlap` (0: it stops at once). At most two are live.

    Deliveries that do not verify are kept again for 24 h. `seen` is the `mark` of the secrets that the operator looked at: a rotation
    in between is refused. None: whatever is in force is rotated. Raises NotFound, EndpointRefused, SecretRefused.
    """
    lock_namespace(namespace)
    endpoint = _locked(namespace, slug)
    if seen is not None and mark(endpoint) != seen:
        raise EndpointRefused("its secret was rotated in the meantime; check the endpoint, then rotate again if needed")
    row = Pack.objects.get(id=endpoint.pack_id)
    _check_secrets(row, EndpointDraft(row.name, slug, signature=endpoint.signature_scheme), (secret,))
    now = clock.now()
    had_one = bool(stored_secrets.in_force(endpoint.secrets))
    text, stopped = stored_secrets.rotated(endpoint.secrets, secret, now, now + overlap)
    _renew(endpoint, text, now)
    endpoint.save()
    ends = now + overlap if had_one and overlap else None
    detail = {"old_ends_at": ends.isoformat() if ends else None, "stopped_at_once": stopped}
    audit_log.record(actor, "endpoint.rotate", f"{namespace}/{slug}", reason, detail=detail)
    return Rotated(slug, ends, stopped)


@one_unit
def disable(namespace: str, slug: str, *, actor: str, reason: str = "", discard: bool = False) -> bool:
    """Take no more deliveries here: they are answered 503 (the provider tries again), or 410 with `discard`. False = was so already.

    Raises NotFound.
    """
    return _set_state(namespace, slug, EndpointState.DISABLED, discard, actor=actor, action="endpoint.disable", reason=reason)


@one_unit
def enable(namespace: str, slug: str, *, actor: str, reason: str = "") -> bool:
    """Take deliveries again. False = it did already. Raises NotFound."""
    return _set_state(namespace, slug, EndpointState.ENABLED, False, actor=actor, action="endpoint.enable", reason=reason)


@one_unit
def remove(namespace: str, slug: str, *, actor: str, reason: str = "") -> None:
    """Take the endpoint out: it answers 404 and its secrets are gone; what it received stays and is processed. Raises NotFound."""
    lock_namespace(namespace)
    endpoint = _locked(namespace, slug)
    endpoint.state, endpoint.secrets = EndpointState.REMOVED, ""
    endpoint.save(update_fields=["state", "secrets"])
    audit_log.record(actor, "endpoint.remove", f"{namespace}/{slug}", reason)


def _set_state(namespace: str, slug: str, state: EndpointState, discard: bool, *, actor: str, action: str, reason: str) -> bool:
    lock_namespace(namespace)
    endpoint = _locked(namespace, slug)
    if (endpoint.state, endpoint.discard_when_disabled) == (state, discard):
        return False
    endpoint.state, endpoint.discard_when_disabled = state, discard
    endpoint.save(update_fields=["state", "discard_when_disabled"])
    audit_log.record(actor, action, f"{namespace}/{slug}", reason, detail={"discard": discard})
    return True


def mark(endpoint: Endpoint) -> str:
    """Of the secrets in force: another one after each rotation."""
    return (endpoint.rotated_at or endpoint.created_at).isoformat()


def facts(namespace: str, slug: str) -> EndpointFacts:
    """What the ingress knows of an endpoint, read now: for verbs that check or sign by it. Raises NotFound."""
    found = endpoint_facts.load((namespace, slug))
    if found is None:
        raise _no_such_endpoint(namespace, slug)
    return found


def lines(namespace: str) -> list[EndpointLine]:
    """Every endpoint of a namespace but removed ones, by slug. Three queries."""
    now = clock.now()
    names = dict(Pack.objects.filter(namespace=namespace).values_list("id", "name"))
    rows = Endpoint.objects.filter(namespace=namespace).exclude(state=EndpointState.REMOVED).order_by("slug", "id")
    return [_line(row, names.get(row.pack_id, "?"), now) for row in rows]


def _line(row: Endpoint, pack_name: str, now: datetime) -> EndpointLine:
    own = EndpointLimits.of(row.limits)
    return EndpointLine(
        id=row.id,
        namespace=row.namespace,
        slug=row.slug,
        pack=pack_name,
        state=row.state,
        path=ingress_path(row.namespace, row.slug),
        account=account_of(row.account, row.slug),
        public_url=row.public_url,
        signature=row.signature_scheme,
        unverified=row.unverified_policy,
        unverified_until=row.unverified_until,
        max_body_bytes=own.max_body_bytes,
        limit=own.written.get("limit"),
        concurrency=own.concurrency,
        spool=own.spool,
        live_secrets=len(secrets.live(row.secrets, now)),
        rotated_at=row.rotated_at,
    )


def _find(namespace: str, slug: str) -> Endpoint | None:
    rows = Endpoint.objects.select_for_update().filter(namespace=namespace, slug=slug)
    return next((row for row in rows if row.slug == slug), None)


def _locked(namespace: str, slug: str) -> Endpoint:
    found = _find(namespace, slug)
    if found is None or found.state == EndpointState.REMOVED:
        raise _no_such_endpoint(namespace, slug)
    return found


def _no_such_endpoint(namespace: str, slug: str) -> NotFound:
    """The error for an endpoint that is not there, naming those that are."""
    known = ", ".join(line.slug for line in lines(namespace)) or "none"
    return NotFound(f"there is no endpoint {slug!r} in namespace {namespace!r}; known: {known}")


NO_ACCOUNT: Final = {
    "delivery": "takes the account from each delivery",
    "none": "has ids that are unique without an account",
}


def _check_account(row: Pack, draft: EndpointDraft) -> None:
    """Raises EndpointRefused where an account would be without effect."""
    why = NO_ACCOUNT.get(packs.pack_class(row.code_name).accounts)
    if draft.account and why is not None:
        raise EndpointRefused(f"endpoint {draft.slug!r} sets account, but pack {row.name!r} {why}; remove account")


def _check_secrets(row: Pack, draft: EndpointDraft, values: Sequence[Secret]) -> None:
    """Raises EndpointRefused when the scheme needs a secret and there is none, SecretRefused for one that cannot be one."""
    scheme = scheme_of(row, draft.signature)
    if scheme.needs_secret and not values:
        raise EndpointRefused(
            f"endpoint {draft.slug!r} needs a secret: {row.name} checks by {scheme.name}; give secrets, e.g. env:NAME"
        )
    if len(values) > secrets.MAX_LIVE:
        raise SecretRefused(
            f"endpoint {draft.slug!r} has {len(values)} secrets; at most {secrets.MAX_LIVE} can be valid at the same time"
        )
    for value in values:
        try:
            scheme.check_secret(value.value)
        except ValueError as error:
            raise SecretRefused(f"a secret of endpoint {draft.slug!r} is refused: {error}") from None


def scheme_of(row: Pack, signature: str) -> pack.SignatureScheme:
    """The signature scheme in force for an endpoint of this pack. Raises NotFound, EndpointRefused."""
    code = packs.pack_class(row.code_name)(json.loads(row.settings))
    try:
        return code.scheme_named(signature)
    except ValueError as error:
        raise EndpointRefused(f"{error}; correct or remove signature") from None


def _settings(row: Endpoint) -> dict[str, Any]:
    return {
        "account": row.account,
        "public_url": row.public_url,
        "signature": row.signature_scheme,
        "unverified": row.unverified_policy,
        **dict.fromkeys(LIMIT_NAMES),
        **EndpointLimits.of(row.limits).written,
    }


def _apply(row: Endpoint, draft: EndpointDraft) -> None:
    row.account = draft.account
    row.public_url = draft.public_url
    row.signature_scheme = draft.signature
    row.unverified_policy = draft.unverified
    row.limits = draft.limits.into(row.limits)


def _renew(row: Endpoint, text: str, now: datetime) -> None:
    row.secrets = text
    row.rotated_at = now
    row.unverified_until = now + UNVERIFIED_WINDOW
    row.unverified_not_kept = 0
