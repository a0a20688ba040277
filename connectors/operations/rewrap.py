"""Rewrap: every stored secret under the first of HEADRACE_ENCRYPTION_KEYS, so that an old key can be taken out afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connectors import audit_log, secrets
from connectors.models import Connection, Endpoint
from connectors.secrets import SecretsUnreadable

TABLES: Final = (("endpoint", Endpoint), ("connection", Connection))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row whose secrets no key opens; it is left as it is."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """How many rows are now under the first key, which ones no key opens, and how many changed meanwhile (run again for those)."""

    rows: int
    unreadable: tuple[Unreadable, ...]
    changed_meanwhile: int


def rewrap(*, actor: str) -> Rewrapped:
    """Encrypt all secrets again. Row by row, each by compare-and-swap on its text, so that a rotation at the same moment wins.

    Raises NoEncryptionKey.
    """
    rows, meanwhile, unreadable = 0, 0, []
    for kind, table in TABLES:
        for row in table.objects.exclude(secrets="").order_by("id").iterator(chunk_size=500):
            try:
                text = secrets.rewrap(row.secrets)
            except SecretsUnreadable as error:
                unreadable.append(Unreadable(kind, str(row), str(error)))
                continue
            swapped = table.objects.filter(id=row.id, secrets=row.secrets).update(secrets=text)
            rows += swapped
            meanwhile += 1 - swapped
    audit_log.record(actor, "secrets.rewrap", "secrets", count=rows, detail={"unreadable": len(unreadable)})
    return Rewrapped(rows, tuple(unreadable), meanwhile)
