"""Connections: where flows such as `http_forward` post to; put, disable, enable, remove.

One transaction (or the caller's), under the namespace's lock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from connectors import audit_log
from connectors.configuration import stored_secrets
from connectors.configuration.change import ConfigurationRefused, NotFound, lock_namespace, one_unit
from connectors.configuration.stored_secrets import Secret, SecretRefused
from connectors.models import Connection, Route
from connectors.signatures.standard_webhooks import SHARED_KEY, key_of
from projection.database import clock
from projection.limits import circuit_breaker
from projection.models import WorkItem
from projection.states import NONTERMINAL


class ConnectionInUse(ConfigurationRefused):
    """The connection cannot be removed now; the message says what uses it."""


@dataclass(frozen=True, slots=True)
class ConnectionDraft:
    """What a connection is to be. `secrets` (Standard Webhooks, `whsec_…`) None: leave the stored ones as they are."""

    name: str
    url: str
    secrets: tuple[Secret, ...] | None = None


@one_unit
def put(namespace: str, draft: ConnectionDraft, *, actor: str, reason: str = "") -> tuple[str, ...] | None:
    """Create the connection, or make it what the draft says. None = created; else what differs (nothing: it was so already).

    Raises SecretRefused for a secret that cannot sign.
    """
    lock_namespace(namespace)
    for value in draft.secrets or ():
        check_secret(draft.name, value)
    rows = Connection.objects.select_for_update().filter(namespace=namespace, name=draft.name)
    row = next((each for each in rows if each.name == draft.name), None)
    if row is None:
        text = stored_secrets.stored(draft.secrets) if draft.secrets else ""
        Connection.objects.create(namespace=namespace, name=draft.name, url=draft.url, secrets=text, created_at=clock.now())
        audit_log.record(actor, "connection.create", f"{namespace}/{draft.name}", reason, detail={"url": draft.url})
        return None
    changes = _change(row, draft)
    if changes:
        row.save()
        audit_log.record(actor, "connection.change", f"{namespace}/{draft.name}", reason, detail={"changes": changes})
    return tuple(changes)


def set_disabled(namespace: str, name: str, disabled: bool, *, actor: str, reason: str = "") -> bool:
    """Post nothing to the connection any more (its work waits and uses no attempts), or post again. False = was so already.

    Raises NotFound.
    """
    changed = _set_disabled(namespace, name, disabled, actor=actor, reason=reason)
    if changed and not disabled:
        circuit_breaker.end_park(f"{namespace}/{name}")
    return changed


@one_unit
def _set_disabled(namespace: str, name: str, disabled: bool, *, actor: str, reason: str) -> bool:
    lock_namespace(namespace)
    row = _locked(namespace, name)
    if row.is_disabled == disabled:
        return False
    row.settings = json.dumps({**json.loads(row.settings or "{}"), "disabled": disabled})
    row.save(update_fields=["settings"])
    audit_log.record(actor, f"connection.{'disable' if disabled else 'enable'}", f"{namespace}/{name}", reason)
    return True


@one_unit
def remove(namespace: str, name: str, *, actor: str, reason: str = "") -> None:
    """Remove the connection and its secrets. Raises NotFound; ConnectionInUse while a current route or open work posts to it."""
    lock_namespace(namespace)
    row = _locked(namespace, name)
    using = Route.objects.filter(namespace=namespace, connection=name)
    keys = sorted(set(using.filter(is_current=True, deleted_at=None).values_list("route_key", flat=True)))
    if keys:
        raise ConnectionInUse(
            f"connection {name!r} is used by route{'s' if len(keys) > 1 else ''} {', '.join(keys)}; retire or change them first"
        )
    ids = list(using.values_list("id", flat=True))
    if ids and WorkItem.objects.filter(route_id__in=ids, state__in=NONTERMINAL).exists():
        raise ConnectionInUse(f"open work still posts to connection {name!r}; wait until it has ended, or cancel it")
    row.delete()
    audit_log.record(actor, "connection.remove", f"{namespace}/{name}", reason, detail={"url": row.url})


def _locked(namespace: str, name: str) -> Connection:
    rows = {row.name: row for row in Connection.objects.select_for_update().filter(namespace=namespace).order_by("name")}
    if name not in rows:
        known = ", ".join(rows) or "none"
        raise NotFound(f"there is no connection {name!r} in namespace {namespace!r}; known: {known}")
    return rows[name]


def _change(row: Connection, draft: ConnectionDraft) -> list[str]:
    changes = []
    if row.url != draft.url:
        changes.append(f"url: {row.url} → {draft.url}")
        row.url = draft.url
    if draft.secrets is not None:
        text = stored_secrets.replaced(row.secrets, draft.secrets)
        if text != row.secrets:
            changes.append("secrets: replaced")
            row.secrets = text
    return changes


def check_secret(name: str, value: Secret) -> None:
    """Raises SecretRefused when the secret cannot sign: it is no base64 (`whsec_` before it or not), or a key that only verifies."""
    try:
        version, _ = key_of(value.value)
    except ValueError as error:
        raise SecretRefused(f"a secret of connection {name!r} is not a Standard Webhooks key: {error}") from None
    if version != SHARED_KEY:
        raise SecretRefused(f"a secret of connection {name!r} is a public key; requests are signed with a shared secret, whsec_…")
