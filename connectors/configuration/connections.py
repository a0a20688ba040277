"""Connections: where flows such as `http_forward` post to. One transaction (or the caller's), under the namespace's lock."""

from __future__ import annotations

from dataclasses import dataclass

from connectors import audit_log
from connectors.configuration import stored_secrets
from connectors.configuration.change import lock_namespace, one_unit
from connectors.configuration.stored_secrets import Secret, SecretRefused
from connectors.models import Connection
from connectors.signatures.standard_webhooks import SHARED_KEY, key_of
from projection.database import clock


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
